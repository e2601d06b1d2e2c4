// Block I/O by io_uring: one ring for one file, which is registered with it, as is the memory where
// the system allows it.
#pragma once

#include <memory>
#include <string>

#include "core/unique_fd.h"
#include "offload/nvme/block_io.h"

namespace strata::offload {

/// Owns `file`. Null when this system or a policy of it forbids io_uring, or its kernel is older
/// than 5.13; `reason` says which and `file` stays the caller's.
std::unique_ptr<BlockIo> make_uring_io(UniqueFd& file, int capacity, std::string& reason);

}  // namespace strata::offload
