#include "train/report/foreseen_step.h"

#include <algorithm>

namespace strata::train {

ForeseenStep foresee_alone(const compile::StepPrograms& programs, const machine::Machine& machine) {
  ForeseenStep step{.seconds = programs.foreseen_step_seconds(),
                    .how = "each instruction alone on the machine, queues beside one another",
                    .spans = {}};
  for (const auto& [key, program] : programs.programs)
    if (key.is_train()) step.spans.emplace(program.name, foresee_alone(program, machine));
  return step;
}

std::vector<TimeSpan> foresee_alone(const runtime::Program& program,
                                    const machine::Machine& machine) {
  constexpr double kMsPerNs = 1e-6;
  std::vector<TimeSpan> spans;
  spans.reserve(program.instructions.size());
  std::array<double, runtime::kQueues> free_ms{};
  for (const runtime::Instruction& in : program.instructions) {
    double& queue = free_ms[static_cast<std::size_t>(in.queue)];
    double begin = queue;
    for (const std::int32_t other : in.waits)
      begin = std::max(begin, spans[static_cast<std::size_t>(other)].end_ms);
    const double ms = kMsPerNs * static_cast<double>(machine::foreseen_ns(machine, in.demand));
    spans.push_back({begin, queue = begin + ms});
  }
  return spans;
}

}  // namespace strata::train
