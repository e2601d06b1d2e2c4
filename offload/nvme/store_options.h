// How a store transfers; defaults suit one NVMe disk.
#pragma once

#include <chrono>
#include <cstdint>

namespace strata::offload {

/// What the probe chooses.
struct TransferSettings {
  std::int64_t request_bytes = std::int64_t{1} << 20;  ///< of one request; a multiple of 1 MiB
  int depth = 16;                                      ///< requests under way on each device
  bool operator==(const TransferSettings&) const = default;
};

struct StoreOptions {
  std::int64_t stripe_bytes = std::int64_t{4}
                              << 20;  ///< on one device, then the next; multiple of 1 MiB
  TransferSettings settings;
  bool checksums = true;  ///< find bytes that come back other than they were written
  int hash_threads = 0;   ///< compute the checksums, 20 GB/s each; 0: one, two from four cores on
  int most_transfers = 256;  ///< not finished at a time; further ones wait in start_*
  /// A request under way for longer makes wait say so.
  std::chrono::milliseconds stuck_after{60'000};
};

}  // namespace strata::offload
