// The last line of the metrics file where state lives off the device: what each rank moved and
// holds, beside what its Programs say.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/execute/arena.h"
#include "runtime/execute/transfer_tally.h"
#include "runtime/program/disk.h"

namespace strata::train {

/// Bytes that one rank moved. A device's own copies are not observed from outside.
struct MovedBytes {
  std::optional<runtime::QueueBytes> copied;  ///< upload and download, where the host copies
  runtime::DiskCounters disk;                 ///< by the store, of Programs alone
};

/// Memory of one tier of a rank, bytes.
struct TierUse {
  runtime::Tier tier = runtime::Tier::device;
  std::int64_t planned = 0;
  std::int64_t used = 0;  ///< whole pages
};

/// Bytes of an arena that are in memory now; all of them on a device.
std::int64_t resident_bytes(const runtime::Arena& arena);

/// One JSON object: {"programs": [{"name", "runs", "bytes", "conditional_bytes"}], "moved_bytes",
/// "arenas"}; bytes of a Program are those of one run, conditional ones move where a predicate
/// holds: not in skipped steps, and not in late updates (docs/adr/0009) of the first one.
std::string describe_transfers(const std::vector<runtime::ProgramTally>& programs,
                               const MovedBytes& moved, const std::vector<TierUse>& arenas);

}  // namespace strata::train
