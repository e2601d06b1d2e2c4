#include "train/planning/short_flags.h"

#include <utility>

#include "train/planning/reasons_text.h"

namespace strata::train {

std::string short_flags(std::vector<PlannedOption> changes) {
  for (PlannedOption& change : changes)
    if (change.name == "actions") change.value = "...";
  return flags_text(changes);
}

std::string short_flags(const plan::PlannedStep& step, const ResolvedConfig& config,
                        const MemoryBudget& budget) {
  return short_flags(changes_to(config.options, step, budget));
}

std::string flags_to_type(const plan::PlannedStep& step, const ResolvedConfig& config,
                          const MemoryBudget& budget) {
  const std::string flags = short_flags(step, config, budget);
  if (!lacks_folder(config.options, step.choices)) return flags;
  return flags + (flags.empty() ? "" : " ") + "--nvme-path DIR";
}

}  // namespace strata::train
