// Opens a store: files, reserved space, and the best way to transfer that this machine allows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "offload/nvme/nvme_store.h"

namespace strata::offload {

enum class BlockEngine {
  automatic,  ///< io_uring, or threads where it is forbidden; notes() says so then
  threads,    ///< pread and pwrite
};

struct StoreRequest {
  std::vector<std::string> directories;  ///< one per device; transfers are striped over them
  std::int64_t bytes = 0;                ///< of all together; rounded up to runtime::kDiskAlignment
  BlockEngine engine = BlockEngine::automatic;
  StoreOptions options = {};
};

/// All space is reserved when it returns. IoError names the directory that is missing, may not be
/// written or is too small, with needed and available bytes.
std::unique_ptr<NvmeStore> open_store(const StoreRequest& request);

}  // namespace strata::offload
