// Block I/O by threads that call pread and pwrite, for machines where io_uring is forbidden.
#pragma once

#include <memory>

#include "core/unique_fd.h"
#include "offload/nvme/block_io.h"

namespace strata::offload {

/// Owns `file`. At most `threads` requests run at once; others wait.
std::unique_ptr<BlockIo> make_thread_io(UniqueFd file, int capacity, int threads);

}  // namespace strata::offload
