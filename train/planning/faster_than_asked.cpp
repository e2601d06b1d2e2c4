#include "train/planning/faster_than_asked.h"

#include <algorithm>
#include <cstdint>

#include "core/round_up.h"
#include "train/planning/target_needs.h"

namespace strata::train {

bool unlimited_fits(const plan::PlannerAnswer& answer, const MemoryBudget& budget) {
  const std::int64_t asked = plan::scarce_bytes(answer.chosen->needs, budget.machine);
  const std::int64_t most =
      budget.machine.host_is_device() ? asked : std::max(asked, budget.device_bytes);
  const plan::MemoryNeeds& needs = answer.unlimited->needs;
  return plan::scarce_bytes(needs, budget.machine) <= most &&
         plan::all_bytes(lacking_beside(needs, budget)) == 0;
}

std::optional<plan::PlannedStep> faster_than_asked(const PlannedRun& planned,
                                                   const MemoryBudget& budget) {
  constexpr double kTold = 1.02, kToldSeconds = 1e-4;  // less drowns in what runs differ by
  constexpr std::int64_t kRound = 1'000'000;
  const plan::PlannerAnswer& answer = planned.answer;
  if (!answer.is_asked || !answer.unlimited || !unlimited_fits(answer, budget)) return {};
  plan::PlannedStep faster = *answer.unlimited;
  const double seconds = faster.forecast.step_seconds, asked = answer.chosen->forecast.step_seconds;
  if (asked < kTold * seconds || asked < seconds + kToldSeconds) return {};
  if (!budget.machine.host_is_device())
    faster.limits.host_bytes =
        std::min(faster.limits.host_bytes, round_up(faster.needs.host, kRound));
  return faster;
}

}  // namespace strata::train
