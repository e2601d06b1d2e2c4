// Measures a store's devices for about a second and picks how to transfer.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "offload/nvme/nvme_store.h"

namespace strata::offload {

/// What to reserve in `directories`, together, for a probe: enough for a second on fast drives, at
/// most half of what is free there, so that it neither fails nor fills a small drive. 0 where a
/// directory is missing: opening a store says so.
std::int64_t probe_bytes(const std::vector<std::string>& directories);

/// Writes and reads in the store's reserved space, before it is used: afterwards all its bytes read
/// as zero, its counters are zero, no memory is registered, and it uses the settings found. On a
/// slow disk it may take a few times `budget`. Rates include checksums where the store has them;
/// they are not known where it is too small to be measured.
machine::Disk probe(NvmeStore& store,
                    std::chrono::milliseconds budget = std::chrono::milliseconds(1000));

}  // namespace strata::offload
