// The times and shares of instructions by the rates of a Machine.
#pragma once

#include "machine/machine.h"
#include "runtime/simulator/instruction_work.h"

namespace strata::runtime {

/// Each instruction takes machine::foreseen_ns alone. Its share of a resource is what it asks of it
/// per second in that time over what the host has. Where the CPU plays the device, computation
/// takes a core for each thread of its rank (all of its cores, unless the machine has fewer),
/// whatever else runs a part of one, and all of them host memory.
class ForeseenTimes final : public InstructionTimes {
 public:
  /// `machine`: as one rank has it (machine::share_of_rank). `ranks_of_host`: that are simulated
  /// together; their host has so many times what they share.
  explicit ForeseenTimes(machine::Machine machine, int ranks_of_host = 1);
  [[nodiscard]] InstructionWork work_of(const Program& program, int instruction) const override;

 private:
  machine::Machine machine_;
  double ranks_;
};

}  // namespace strata::runtime
