#include "train/planning/planning_text.h"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "core/byte_size.h"
#include "core/format_bytes.h"
#include "plan/disk_writes.h"
#include "train/planning/ended_early.h"
#include "train/planning/faster_than_asked.h"
#include "train/planning/reasons_text.h"
#include "train/planning/short_flags.h"
#include "train/planning/target_needs.h"

namespace strata::train {
namespace {

/// All memory of the device, or of the process, that the target allows, as it is understood: "24GB"
/// for "24 gb".
std::string target_text(const ResolvedConfig& config, const MemoryBudget& budget) {
  if (config.options.target.memory != "auto" && !config.options.target.memory.empty())
    return target_size_text(parse_byte_size(config.options.target.memory).value());
  const std::int64_t arena = budget.machine.host_is_device()
                                 ? budget.host_bytes / budget.local_ranks
                                 : budget.device_bytes;
  return format_bytes(arena + budget.beside_bytes);
}

/// What of the memory that a target names is not an arena's.
std::string beside_text(const MemoryBudget& budget) {
  if (budget.foreseen_beside_bytes <= 0) return "";
  const std::string beside = format_bytes(budget.foreseen_beside_bytes);
  if (!budget.machine.host_is_device())
    return fmt::format("{} of it for driver and libraries", beside);
  return fmt::format(
      "{} of it beside its arenas; the peak that steps print has pages that processes share, too",
      beside);
}

/// "a step of 8 samples of 1024 tokens takes 4.46 s, ...", as foreseen.
std::string speed_text(const plan::PlannedStep& step, const TrainOptions& options,
                       const MemoryBudget& budget) {
  const int ranks = budget.seat.ranks;
  const std::int64_t samples = options.micro_batch * options.accumulation * leaves(options, ranks);
  const double seconds = step.forecast.step_seconds;
  return fmt::format(
      "a step of {} {} of {} tokens in {} ({} {} x micro-batch {} x accumulation {}) is foreseen "
      "to take {:.3g} s, {} tokens/s, bound by {} ({:.0f} % of the step), at {} rates",
      samples, samples == 1 ? "sample" : "samples", options.sequence_length, name_of(options.dtype),
      ranks, ranks == 1 ? "rank" : "ranks", options.micro_batch, options.accumulation, seconds,
      rate_text(static_cast<double>(samples * options.sequence_length) / seconds),
      step.forecast.bound_by, 100 * step.forecast.bound_part,
      name_of(source_of_rates(budget.machine)));
}

/// Says that another program may choose otherwise, which knows no measured times.
std::string times_text(const MemoryBudget& budget) {
  if (budget.machine.times.empty()) return "";
  return "\n  times of instructions that runs have measured here made this choice; plan, which "
         "reads none, may make another (--calibrate off: neither does train)";
}

/// The actions in words: "blocks 1 to 6: 2.gelu made again, 0.norm in host memory".
std::string actions_text(const std::vector<runtime::BlockActions>& saved) {
  using enum runtime::SavedAction;
  std::string text;
  for (const runtime::BlockActions& range : saved) {
    text += fmt::format("\n  block{}: ",
                        range.first_block == range.last_block
                            ? fmt::format(" {}", range.first_block)
                            : fmt::format("s {} to {}", range.first_block, range.last_block));
    std::vector<std::string> parts;
    for (const auto& [action, what] :
         {std::pair(recompute, "made again"), std::pair(host, "in host memory"),
          std::pair(disk, "on the drive")}) {
      std::vector<std::string_view> names;
      for (const auto& [name, chosen] : range.actions)
        if (chosen == action) names.push_back(name);
      if (!names.empty()) parts.push_back(fmt::format("{} {}", what, fmt::join(names, ", ")));
    }
    text += fmt::format("{}", fmt::join(parts, "; "));
  }
  return text;
}

/// "the drives of a host are worn out after 5.8 days of such steps\n" if that is within a year.
std::string wear_warning(const plan::PlannedStep& step, const MemoryBudget& budget) {
  constexpr double kYear = 365;
  const double days = plan::days_until_written(
      budget.machine.disk, static_cast<double>(step.disk_written_bytes) * budget.local_ranks,
      step.forecast.step_seconds);
  if (days <= 0 || days > kYear) return "";
  return fmt::format("the drives of a host are worn out after {:.3g} days of such steps\n", days);
}

/// Differences that are too small to be told.
bool is_slower(const plan::PlannerAnswer& answer, const plan::PlannedStep& step) {
  constexpr double kNotable = 1.005;
  return answer.unlimited && answer.slowdown(step) > kNotable;
}

/// Compares with the step that would be fastest if memory had no limit, and names its settings:
/// they may differ in more than what saves memory.
std::string unlimited_text(const PlannedRun& planned, const MemoryBudget& budget) {
  const plan::PlannerAnswer& answer = planned.answer;
  const std::string flags = short_flags(planned.unlimited_changes);
  return fmt::format(
      "\n  with memory without limit a step would take {:.3g} s{} and need {}; within the target "
      "it takes {:.3g} times as long",
      answer.unlimited->forecast.step_seconds, flags.empty() ? "" : " with " + flags,
      needs_text(answer.unlimited->needs, budget), answer.slowdown(*answer.chosen));
}

/// Names what limits the arena where the settings are typed without a target.
std::string limit_text(const PlannedRun& planned) {
  const std::string limit = arena_limit_text(planned.changes, planned.answer.chosen->needs.device);
  if (limit.empty()) return "";
  return fmt::format("\n  without --target-memory, these settings go with {}", limit);
}

}  // namespace

std::string describe_planned(const PlannedRun& planned, const ResolvedConfig& config,
                             const MemoryBudget& budget) {
  const plan::PlannerAnswer& answer = planned.answer;
  const plan::PlannedStep& chosen = *answer.chosen;
  const std::string target =
      fmt::format("{}target memory {}", wear_warning(chosen, budget), target_text(config, budget));
  std::string text;
  if (answer.is_asked)
    text = target + ": the settings fit as they are, and nothing changes" + autos_text(config);
  else
    text = fmt::format("{} ({}): {}{}", target, name_of(config.options.target.strategy),
                       flags_beside_target(planned.changes), autos_text(config));
  text +=
      fmt::format("\n  it needs {}\n  {}{}", needs_text(chosen.needs, budget, beside_text(budget)),
                  speed_text(chosen, config.options, budget), times_text(budget));
  if (!answer.is_asked) text += limit_text(planned) + actions_text(chosen.choices.actions);
  text += reasons_text(planned, budget);
  if (const std::optional<plan::PlannedStep> faster = faster_than_asked(planned, budget))
    text += fmt::format("\n  a step of {:.3g} s is possible with {}", faster->forecast.step_seconds,
                        flags_text(changes_to(config.options, *faster, budget)));
  else if (is_slower(answer, chosen) && !(answer.is_asked && unlimited_fits(answer, budget)))
    text += unlimited_text(planned, budget);
  if (answer.other_bits)
    text +=
        "\n  this adds gradients in another order: losses differ in their last digits from "
        "those of the settings as they were";
  if (!answer.complete) text += ended_early_text("another plan may be faster");
  if (chosen.needs.disk > 0 && config.options.offload.nvme_paths.empty())
    text += "\n  a run needs --nvme-path DIR, too: a folder on the drive";
  return text;
}

std::string rate_text(double per_second) {
  constexpr double kWhole = 100;  // from here on digits after the point say nothing
  return per_second < kWhole ? fmt::format("{:.3g}", per_second)
                             : fmt::format("{:.0f}", per_second);
}

machine::Source source_of_rates(const machine::Machine& machine) {
  return machine.times.empty() ? machine.device.fp32_flops.source : machine::Source::measured;
}

}  // namespace strata::train
