#include "runtime/program/shortage.h"

namespace strata::runtime {

std::string describe(const Shortage& shortage) {
  std::string kept;
  for (const Tier tier : kAllTiers)
    if (const std::int64_t bytes = shortage.kept_bytes[static_cast<std::size_t>(tier)]; bytes > 0)
      kept +=
          (kept.empty() ? "" : ", ") + std::to_string(bytes) + " in " + std::string(name_of(tier));
  return "Program '" + shortage.program + "': out of memory in tier " +
         std::string(name_of(shortage.tier)) + ": its budget is " +
         std::to_string(shortage.budget_bytes) + " bytes, and this Plan needs at least " +
         std::to_string(shortage.floor_bytes) +
         ", even with one instruction after another: raise the budget, or " +
         (shortage.tier == Tier::device ? "lower the batch, offload more or recompute more"
                                        : "move more to the disk") +
         " (what is kept between steps is, in bytes: " + kept + ")";
}

}  // namespace strata::runtime
