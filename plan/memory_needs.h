// Compares what Programs need of a machine's memories with what it has.
#pragma once

#include <cstdint>
#include <optional>

#include "compile/step_programs.h"

namespace strata::plan {

/// The bytes that one rank needs.
struct MemoryNeeds {
  std::int64_t device = 0;
  std::int64_t host = 0;  ///< pinned and pageable memory
  std::int64_t disk = 0;
};
inline std::int64_t all_bytes(const MemoryNeeds& needs) {
  return needs.device + needs.host + needs.disk;
}
inline MemoryNeeds memory_needs(const compile::StepPrograms& programs) {
  using enum runtime::Tier;
  return {programs.arena_bytes(device),
          programs.arena_bytes(pinned) + programs.arena_bytes(pageable), programs.disk_bytes()};
}

/// The memory that the ranks of one host find there.
struct MachineMemory {
  int local_world = 1;  ///< ranks of this host, which share its memory
  /// Bytes free for the arena of one rank on a device of its own; nullopt: the CPU plays the
  /// device, and arenas are in host memory.
  std::optional<std::int64_t> device_bytes;
  std::int64_t host_bytes = 0;  ///< bytes free for all ranks together; 0: not known

  /// Returns the bytes of host memory that one rank needs.
  [[nodiscard]] std::int64_t host_share(const MemoryNeeds& needs) const {
    return needs.host + (device_bytes ? 0 : needs.device);
  }
  [[nodiscard]] bool holds(const MemoryNeeds& needs) const {
    return (!device_bytes || needs.device <= *device_bytes) &&
           (host_bytes == 0 || host_share(needs) * local_world <= host_bytes);
  }
};

}  // namespace strata::plan
