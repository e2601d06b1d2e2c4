// Opens a store: makes files, reserves space, and chooses the best way to transfer on this machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "offload/nvme/nvme_store.h"

namespace strata::offload {

enum class BlockEngine {
  automatic,  ///< io_uring, or threads if it is forbidden; then notes() says so
  threads,    ///< pread and pwrite
};

struct StoreRequest {
  std::vector<std::string> directories;  ///< one per device; transfers are striped over them
  std::int64_t bytes = 0;                ///< total; rounded up to runtime::kDiskAlignment
  BlockEngine engine = BlockEngine::automatic;
  StoreOptions options = {};
};

/// Returns when all space is reserved. Throws IoError that names the directory that is missing, not
/// writable or too small, with needed and available bytes.
std::unique_ptr<NvmeStore> open_store(const StoreRequest& request);

}  // namespace strata::offload
