// The costs that a simulation is given: what an instruction takes of a simulated host.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/program/program.h"
#include "runtime/schedule/schedule.h"

namespace strata::runtime {

struct InstructionWork {
  std::int64_t alone_ns = 1;          ///< while nothing else runs on the host, > 0
  std::vector<ResourceShare> shares;  ///< of HostResources (host_resources.h)
};

class InstructionTimes {
 public:
  virtual ~InstructionTimes() = default;
  [[nodiscard]] virtual InstructionWork work_of(const Program& program, int instruction) const = 0;
  /// Says whether a rank leaves a collective when its own part ends, as measured parts do: what it
  /// waited for its peers is in them. Otherwise all leave when the last part ends.
  [[nodiscard]] virtual bool ranks_leave_alone() const { return false; }
};

}  // namespace strata::runtime
