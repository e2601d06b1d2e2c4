// Answers of a planner, and budgets, for tests of what is said of them.
#pragma once

#include "train/config/make_plan.h"
#include "train/planning/planned_options.h"

namespace strata::train {

/// Settings that fit as they are, with steps of 1.2 s, where a second would do without a limit.
inline PlannedRun asked_run(const TrainOptions& options) {
  PlannedRun planned;
  planned.answer.is_asked = true;
  planned.answer.chosen = plan::PlannedStep{.choices = choices_of(options)};
  planned.answer.chosen->forecast.step_seconds = 1.2;
  planned.answer.unlimited = planned.answer.chosen;
  planned.answer.unlimited->forecast.step_seconds = 1;
  planned.answer.unlimited->needs.device = 1;  // more than the other one
  return planned;
}

/// A GPU with room for all, beside whose fastest settings those that were asked for take 1.2 s.
inline MemoryBudget large_device() {
  kernels::DeviceCapabilities capabilities;
  capabilities.backend = kernels::DeviceCapabilities::Backend::cuda;
  MemoryBudget budget;
  budget.machine = machine::typical_machine(capabilities);
  budget.device_bytes = 1 << 30;
  budget.host_bytes = 128'000'000'000;
  return budget;
}

}  // namespace strata::train
