// Makes the last line of the metrics file if state lives off the device: what each rank moved and
// holds, and what its Programs say of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/execute/arena.h"
#include "runtime/execute/transfer_tally.h"
#include "runtime/program/disk.h"

namespace strata::train {

/// Bytes that one rank moved. A device's own copies cannot be observed.
struct MovedBytes {
  std::optional<runtime::QueueBytes> copied;  ///< upload and download, if the host does the copies
  runtime::DiskCounters disk;                 ///< transfers of Programs alone, as the store counts
};

/// Memory of one tier of a rank, in bytes.
struct TierUse {
  runtime::Tier tier = runtime::Tier::device;
  std::int64_t planned = 0;
  std::int64_t used = 0;  ///< whole pages
};

/// Bytes of an arena that are resident in memory now; on a device all of them.
std::int64_t resident_bytes(const runtime::Arena& arena);

/// One JSON object: {"programs": [{"name", "runs", "bytes", "conditional_bytes"}], "moved_bytes",
/// "arenas"}. Bytes of a Program are those of one run. Conditional ones move only if a predicate
/// holds: not in skipped steps, nor in the first step's late updates (docs/adr/0009).
std::string describe_transfers(const std::vector<runtime::ProgramTally>& programs,
                               const MovedBytes& moved, const std::vector<TierUse>& arenas);

}  // namespace strata::train
