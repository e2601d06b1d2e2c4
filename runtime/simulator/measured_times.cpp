#include "runtime/simulator/measured_times.h"

#include <algorithm>

#include "core/error.h"

namespace strata::runtime {

void MeasuredTimes::set(const Program& program, int instruction, std::int64_t ns) {
  std::vector<std::int64_t>& of_program = ns_[program.name];
  of_program.resize(program.instructions.size(), -1);
  of_program[static_cast<std::size_t>(instruction)] = ns;
}

InstructionWork MeasuredTimes::work_of(const Program& program, int instruction) const {
  const auto found = ns_.find(program.name);
  const auto at = static_cast<std::size_t>(instruction);
  if (found == ns_.end() || found->second.size() != program.instructions.size() ||
      found->second[at] < 0)
    throw InvalidArgument("nobody measured instruction " + std::to_string(instruction) + " ('" +
                          program.instructions[at].label + "') of Program '" + program.name +
                          "'; measure a run of the same Programs");
  return {std::max<std::int64_t>(1, found->second[at]), {}};
}

}  // namespace strata::runtime
