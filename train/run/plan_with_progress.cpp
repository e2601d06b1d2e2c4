#include "train/run/plan_with_progress.h"

#include <utility>

namespace strata::train {

PlannedRun plan_with_progress(ProgramRequest programs, const ResolvedConfig& config,
                              const MemoryBudget& budget, PlanningBeat::Hear hear) {
  const PlanningBeat planning(std::move(hear), programs.beat);
  programs.beat = planning.beat();
  return plan_allowed(programs, config, budget);
}

}  // namespace strata::train
