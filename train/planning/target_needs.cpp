#include "train/planning/target_needs.h"

#include <fmt/format.h>

#include <vector>

#include "core/byte_size.h"
#include "core/format_bytes.h"
#include "core/round_up.h"
#include "train/planning/planned_options.h"

namespace strata::train {

std::string needs_text(const plan::MemoryNeeds& needs, const MemoryBudget& budget,
                       const std::string& of_target) {
  const bool on_cpu = budget.machine.host_is_device();
  const std::int64_t arenas = plan::scarce_bytes(needs, budget.machine);
  std::string text = format_bytes(arenas + budget.foreseen_beside_bytes) +
                     (on_cpu ? " per process" : " of the device");
  std::vector<std::string> notes;
  if (budget.beside_bytes > budget.foreseen_beside_bytes)
    notes.push_back(fmt::format("{} as targets count it, with all pages that processes share",
                                format_bytes(arenas + budget.beside_bytes)));
  if (!of_target.empty()) notes.push_back(of_target);
  if (!notes.empty()) text += fmt::format(" ({})", fmt::join(notes, "; "));
  if (!on_cpu && needs.host > 0)
    text += fmt::format(", {} of host memory per rank", format_bytes(needs.host));
  if (needs.disk > 0) text += fmt::format(", {} on the drive", format_bytes(needs.disk));
  return text;
}

plan::MemoryNeeds lacking_beside(const plan::MemoryNeeds& needs, const MemoryBudget& budget) {
  const plan::MemoryLimits limits{
      .host_bytes = budget.host_bytes > 0 && !budget.machine.host_is_device()
                        ? budget.host_bytes / budget.local_ranks
                        : kUnlimitedMemory,
      .disk_bytes = budget.disk_of_rank()};
  return limits.lacking(needs, !budget.machine.host_is_device());
}

bool is_beyond(std::int64_t target, const MemoryBudget& budget) {
  return budget.most_bytes > 0 && target > budget.most_bytes;
}

std::int64_t least_target(const plan::PlannedStep& smallest, const ResolvedConfig& config,
                          const MemoryBudget& budget) {
  return plan::least_target(plan::scarce_bytes(smallest.needs, budget.machine),
                            config.options.target.strategy, terms_of(budget));
}

std::string target_size_text(std::int64_t bytes) {
  constexpr double kMB = 1e6;
  const std::string megabytes = fmt::format("{}MB", static_cast<double>(bytes) / kMB);
  const std::string whole = byte_size_text(bytes);
  return bytes > kMB && megabytes.size() <= whole.size() ? megabytes : whole;
}

std::int64_t needed_host_limit(const plan::PlannedStep& step, const ResolvedConfig& config,
                               const MemoryBudget& budget) {
  constexpr std::int64_t kRound = 1'000'000;
  const std::int64_t limit = config.options.offload.host_memory_bytes;
  if (!budget.machine.host_is_device() || limit == kUnlimitedMemory) return 0;
  const std::int64_t needed = plan::scarce_bytes(step.needs, budget.machine) * budget.local_ranks;
  return needed > limit ? round_up(needed, kRound) : 0;
}

bool is_to_be_had(const plan::PlannedStep& step, const ResolvedConfig& config,
                  const MemoryBudget& budget) {
  return !is_beyond(least_target(step, config, budget), budget) &&
         needed_host_limit(step, config, budget) == 0 &&
         plan::all_bytes(lacking_beside(step.needs, budget)) == 0;
}

}  // namespace strata::train
