// The memory that a planner may use: of what a machine has, what target and limits leave.
#pragma once

#include <cstdint>
#include <string>

#include "comm/seat.h"
#include "machine/machine.h"
#include "train/config/options.h"

namespace strata::train {

/// The memory that a run may take, and the machine it is planned for.
struct MemoryBudget {
  comm::Seat seat;
  machine::Machine machine;  ///< as one rank has it
  int local_ranks = 1;       ///< ranks of a host
  /// Bytes of a rank's device for its arena; kUnlimitedMemory where the CPU computes.
  std::int64_t device_bytes = kUnlimitedMemory;
  std::int64_t host_bytes = 0;  ///< of all ranks of a host, arenas of a CPU included; 0: no limit
  /// Of device_bytes, or of a rank's part of host_bytes where the CPU computes: what the target
  /// leaves arenas, whatever --device-memory and --host-memory allow.
  std::int64_t target_bytes = kUnlimitedMemory;
  /// Of host_bytes of a device's host: what --host-memory could give at most; 0: unknown.
  std::int64_t most_host_bytes = 0;
  /// Bytes of the device, or of the process where the CPU computes, that are not the arena's.
  std::int64_t beside_bytes = 0;
  /// Bytes of these as foreseen, which count for each process its part of pages that are shared.
  std::int64_t foreseen_beside_bytes = 0;
  std::string taken_by;          ///< who takes beside_bytes, for people
  bool leaves_no_arena = false;  ///< the target is no more than beside_bytes
  std::int64_t most_bytes = 0;   ///< that a target may name: all of the device or host; 0: unknown
  bool has_drive = false;        ///< state may go to the disk
  std::int64_t disk_bytes = kUnlimitedMemory;  ///< of the drives, for all ranks of a host

  [[nodiscard]] std::int64_t disk_of_rank() const {
    return disk_bytes == kUnlimitedMemory ? disk_bytes : disk_bytes / local_ranks;
  }
};

/// The machine of a run, here or described, and the memory that is there before any arena.
struct MachineFound {
  comm::Seat seat;
  machine::Machine machine;                    ///< as one rank has it
  int local_ranks = 1;                         ///< ranks of a host
  bool has_drive = false;                      ///< state may go to the disk
  std::int64_t disk_bytes = kUnlimitedMemory;  ///< of the drives of a host
  std::int64_t host_bytes = 0;                 ///< free for all ranks of a host; 0: unknown
  bool is_here = false;  ///< host_bytes are free now, and processes of the run will take some
  std::int64_t device_bytes = 0;        ///< all of a rank's device, if it has one; 0: unknown
  std::int64_t device_taken_bytes = 0;  ///< of these, what is not the arena's
  std::string owner;     ///< who has the memory that a target names, for people: "the device"
  std::string taken_by;  ///< who takes device_taken_bytes, for people
};

/// Returns what `options` leave: the target counts all that a device or process holds,
/// --device-memory and --host-memory limit what arenas take of it. The host of a device keeps a
/// twentieth of its memory for other processes, unless --host-memory says how much of it may be
/// taken, and what processes of a run here take beside their arenas. The same for a run and for a
/// plan of it. A target that leaves arenas nothing gives them one byte, so that planning says what
/// would do. Throws ConfigError for a target that the machine cannot give.
MemoryBudget budget_for(const MachineFound& found, const TrainOptions& options);

}  // namespace strata::train
