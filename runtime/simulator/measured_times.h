// The times of instructions as a run measured them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/simulator/instruction_work.h"

namespace strata::runtime {

/// No instruction has shares: each was measured beside the others.
class MeasuredTimes final : public InstructionTimes {
 public:
  void set(const Program& program, int instruction, std::int64_t ns);
  /// Throws InvalidArgument for an instruction that was not measured.
  [[nodiscard]] InstructionWork work_of(const Program& program, int instruction) const override;

 private:
  std::map<std::string, std::vector<std::int64_t>> ns_;  // of a Program by its name; -1: none
};

}  // namespace strata::runtime
