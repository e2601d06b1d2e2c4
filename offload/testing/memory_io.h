// Block I/O on memory: a disk for tests.
#pragma once

#include <memory>

#include "offload/nvme/block_io.h"

namespace strata::offload {

/// Makes `bytes` of zeros. Requests complete in the order in which they were submitted.
std::unique_ptr<BlockIo> make_memory_io(std::int64_t bytes, int capacity);

}  // namespace strata::offload
