// Measures a store's devices for about a second and chooses the transfer settings.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "machine/machine.h"
#include "offload/nvme/nvme_store.h"

namespace strata::offload {

constexpr std::chrono::milliseconds kProbeTime{1000};

/// Returns the bytes to reserve in all `directories` together for a probe: enough for a second on
/// fast drives, but at most half of the free space, so that the probe neither fails nor fills a
/// small drive. Returns 0 if a directory is missing; opening a store reports that.
std::int64_t probe_bytes(const std::vector<std::string>& directories);

/// Writes and reads in the store's reserved space before the store is used. Afterwards all bytes
/// read as zero, counters are zero, no memory is registered, and the store uses the best settings.
/// On a slow disk it may take a few times `budget`. Rates include checksums if the store has them;
/// they stay unknown if the store is too small to be measured, or there is too little memory:
/// `most_bytes`, of which 32 MiB are taken for each device, up to 128.
machine::Disk probe(NvmeStore& store, std::chrono::milliseconds budget = kProbeTime,
                    std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max());

}  // namespace strata::offload
