// Options of a store's transfers; the defaults suit one NVMe disk.
#pragma once

#include <chrono>
#include <cstdint>

namespace strata::offload {

/// The settings that the probe chooses.
struct TransferSettings {
  std::int64_t request_bytes = std::int64_t{1} << 20;  ///< size of one request; a multiple of 1 MiB
  int depth = 16;                                      ///< requests under way on each device
  bool operator==(const TransferSettings&) const = default;
};

struct StoreOptions {
  std::int64_t stripe_bytes = std::int64_t{4}
                              << 20;  ///< bytes on one device before the next; a multiple of 1 MiB
  TransferSettings settings;
  bool checksums = true;  ///< detect bytes that differ from what was written
  int hash_threads = 0;   ///< threads for checksums, 20 GB/s each; 0: one, two from four cores on
  int most_transfers = 256;  ///< unfinished at a time; start_* waits for room
  /// A request under way for longer makes wait throw.
  std::chrono::milliseconds stuck_after{60'000};
};

}  // namespace strata::offload
