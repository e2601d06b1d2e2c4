// Block I/O by io_uring: one ring for one file. The file is registered with the ring, and memory if
// the system allows it.
#pragma once

#include <memory>
#include <string>

#include "core/unique_fd.h"
#include "offload/nvme/block_io.h"

namespace strata::offload {

/// Owns `file`. Returns null when this system or its policy forbids io_uring, or the kernel is
/// older than 5.13; then `reason` says which, and the caller keeps `file`.
std::unique_ptr<BlockIo> make_uring_io(UniqueFd& file, int capacity, std::string& reason);

}  // namespace strata::offload
