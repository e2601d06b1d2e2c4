#include "runtime/program/shortage.h"

#include <fmt/core.h>

namespace strata::runtime {

std::string describe(const Shortage& shortage) {
  std::string kept;
  for (const Tier tier : kAllTiers)
    if (const std::int64_t bytes = shortage.kept_bytes[static_cast<std::size_t>(tier)]; bytes > 0)
      kept += fmt::format("{}{} in {}", kept.empty() ? "" : ", ", bytes, name_of(tier));
  return fmt::format(
      "Program '{}': out of memory in tier {}: its budget is {} bytes, and this Plan needs at "
      "least {}, even with one instruction after another: raise the budget, or {} (what is kept "
      "between steps is, in bytes: {})",
      shortage.program, name_of(shortage.tier), shortage.budget_bytes, shortage.floor_bytes,
      shortage.tier == Tier::device ? "lower the batch, offload more or recompute more"
                                    : "move more to the disk",
      kept);
}

}  // namespace strata::runtime
