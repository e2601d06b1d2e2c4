#include "train/planning/planning_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/byte_size.h"
#include "core/format_bytes.h"
#include "core/round_up.h"
#include "core/text_table.h"
#include "train/planning/reasons_text.h"

namespace strata::train {
namespace {

/// All memory of the device, or of the process, that the target allows.
std::string target_text(const ResolvedConfig& config, const MemoryBudget& budget) {
  if (config.options.target.memory != "auto" && !config.options.target.memory.empty())
    return config.options.target.memory;
  const std::int64_t arena = budget.machine.host_is_device()
                                 ? budget.host_bytes / budget.local_ranks
                                 : budget.device_bytes;
  return format_bytes(arena + budget.beside_bytes);
}

/// What of the memory that a target names is not an arena's.
std::string beside_text(const MemoryBudget& budget) {
  if (budget.beside_bytes <= 0) return "";
  return fmt::format(" ({} of it {})", format_bytes(budget.beside_bytes),
                     budget.machine.host_is_device() ? "beside its arenas"
                                                     : "of the device for driver and libraries");
}

/// "a step of 8 samples of 1024 tokens takes 4.46 s, ...", as foreseen.
std::string speed_text(const plan::PlannedStep& step, const TrainOptions& options,
                       const MemoryBudget& budget) {
  const int ranks = budget.seat.ranks;
  const std::int64_t samples = options.micro_batch * options.accumulation * leaves(options, ranks);
  const double seconds = step.forecast.step_seconds;
  return fmt::format(
      "a step of {} {} of {} tokens ({} {} x micro-batch {} x accumulation {}) is foreseen to take "
      "{:.3g} s, {} tokens/s, bound by {} ({:.0f} % of the step), at {} rates",
      samples, samples == 1 ? "sample" : "samples", options.sequence_length, ranks,
      ranks == 1 ? "rank" : "ranks", options.micro_batch, options.accumulation, seconds,
      rate_text(static_cast<double>(samples * options.sequence_length) / seconds),
      step.forecast.bound_by, 100 * step.forecast.bound_part,
      name_of(budget.machine.device.fp32_flops.source));
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

}  // namespace

std::string needs_text(const plan::MemoryNeeds& needs, const MemoryBudget& budget) {
  const bool on_cpu = budget.machine.host_is_device();
  const std::int64_t scarce = plan::scarce_bytes(needs, budget.machine) + budget.beside_bytes;
  std::string text = format_bytes(scarce) + (on_cpu ? " per process" : " of the device");
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
  constexpr std::int64_t kRound = 1'000'000;
  const double part = plan::share_of_budget(config.options.target.strategy);
  const auto scarce = static_cast<double>(plan::scarce_bytes(smallest.needs, budget.machine));
  const auto all = static_cast<std::int64_t>(std::ceil(scarce / part)) + budget.beside_bytes;
  return (all + kRound - 1) / kRound * kRound;
}

std::string describe_planned(const PlannedRun& planned, const ResolvedConfig& config,
                             const MemoryBudget& budget) {
  const plan::PlannerAnswer& answer = planned.answer;
  const plan::PlannedStep& chosen = *answer.chosen;
  const std::string target = fmt::format("target memory {}", target_text(config, budget));
  std::string text;
  if (answer.is_asked)
    text = target + ": the settings fit as they are, and nothing changes";
  else
    text = fmt::format("{} ({}): {}", target, name_of(config.options.target.strategy),
                       flags_text(planned.changes));
  text += fmt::format("\n  it needs {}{}\n  {}", needs_text(chosen.needs, budget),
                      beside_text(budget), speed_text(chosen, config.options, budget));
  if (!answer.is_asked && !chosen.choices.actions.empty())
    text += actions_text(chosen.choices.actions);
  text += reasons_text(planned, budget);
  const bool could_be_faster = answer.unlimited && answer.slowdown(chosen) > 1.005;
  if (could_be_faster && answer.is_asked &&
      plan::scarce_bytes(answer.unlimited->needs, budget.machine) <=
          plan::scarce_bytes(chosen.needs, budget.machine))
    text += fmt::format("\n  a step of {:.3g} s is possible with {}",
                        answer.unlimited->forecast.step_seconds,
                        flags_text(changes_to(config.options, *answer.unlimited, budget)));
  else if (could_be_faster)
    text += fmt::format(
        "\n  without a limit a step would take {:.3g} s, so this one is {:.0f} % slower, and need "
        "{}",
        answer.unlimited->forecast.step_seconds, 100 * (answer.slowdown(chosen) - 1),
        needs_text(answer.unlimited->needs, budget));
  if (answer.other_bits)
    text +=
        "\n  this adds gradients in another order: losses differ in their last digits from those "
        "of "
        "the settings as they were";
  if (!answer.complete) text += "\n  the search ended early: another plan may be faster";
  if (chosen.needs.disk > 0 && config.options.offload.nvme_paths.empty())
    text += "\n  a run needs --nvme-path DIR, too: a folder on the drive";
  return text;
}

std::string rate_text(double per_second) {
  constexpr double kWhole = 100;  // from here on digits after the point say nothing
  return per_second < kWhole ? fmt::format("{:.3g}", per_second)
                             : fmt::format("{:.0f}", per_second);
}

std::string describe_attempts(const PlannedRun& planned, const ResolvedConfig& config,
                              const MemoryBudget& budget) {
  using enum TextTable::Align;
  TextTable table({{"s/step", right}, {"guessed", right}, {"settings"}});
  std::vector<plan::Attempt> attempts = planned.answer.attempts;
  std::ranges::stable_sort(attempts, {}, [](const plan::Attempt& attempt) {
    return attempt.seconds.value_or(std::numeric_limits<double>::infinity());
  });
  for (const plan::Attempt& attempt : attempts) {
    std::vector<PlannedOption> changes =
        changes_to(config.options, {.choices = attempt.choices}, budget);
    for (PlannedOption& change : changes)
      if (change.name == "actions") change.value = "...";  // pages of them
    const std::string flags = flags_text(changes);
    const bool is_chosen =
        planned.answer.chosen && attempt.choices == planned.answer.chosen->choices;
    table.add({attempt.seconds ? fmt::format("{:.4g}", *attempt.seconds) : "no " + attempt.lacks,
               fmt::format("{:.4g}", attempt.guessed_seconds),
               (is_chosen ? "chosen: " : "") + (flags.empty() ? "as asked" : flags)});
  }
  return table.text();
}

/// The cheapest changes, and settings that forbid smaller plans.
static std::string what_would_help(const PlannedRun& planned, const ResolvedConfig& config,
                                   const MemoryBudget& budget) {
  return forbidden_text(planned, config, budget) +
         changes_text(planned.answer.changes, config.options, budget.machine);
}

/// "the host has 113.25 GiB to give, 256.00 MiB too little": what the host of a device and its
/// drives lack of `lacking`, for all of its ranks; "": nothing.
static std::string lacking_text(const plan::MemoryNeeds& lacking, const plan::MemoryNeeds& needs,
                                const MemoryBudget& budget) {
  const auto all = [&](std::int64_t of_rank) { return of_rank * budget.local_ranks; };
  std::string text;
  if (lacking.host > 0) {
    text = fmt::format("the host has {} to give, {} too little", format_bytes(budget.host_bytes),
                       format_bytes(all(lacking.host)));
    constexpr std::int64_t kRound = 1'000'000;
    const std::int64_t needed = round_up(all(needs.host), kRound);
    if (needed <= budget.most_host_bytes)
      text += fmt::format(
          " (--host-memory {} gives that, and leaves {} to others; without it a twentieth stays "
          "free)",
          byte_size_text(needed), format_bytes(budget.most_host_bytes - needed));
  }
  if (lacking.disk > 0)
    text += fmt::format("{}its drives have {}, {} too little", text.empty() ? "" : ", and ",
                        format_bytes(budget.disk_bytes), format_bytes(all(lacking.disk)));
  return text;
}

/// Says which memory is short for the plan that comes nearest to what there is.
static std::string nearest_text(plan::PlannedStep nearest, const ResolvedConfig& config,
                                const MemoryBudget& budget) {
  nearest.limits = {};
  const std::string flags = flags_text(changes_to(config.options, nearest, budget));
  const std::int64_t least = least_target(nearest, config, budget);
  const plan::MemoryNeeds lacking = lacking_beside(nearest.needs, budget);
  std::vector<std::string> short_of;
  if (is_beyond(least, budget))
    short_of.push_back(fmt::format(
        "{} has {}", budget.machine.host_is_device() ? "each process on this host" : "the device",
        format_bytes(budget.most_bytes)));
  if (const std::string text = lacking_text(lacking, nearest.needs, budget); !text.empty())
    short_of.push_back(text);
  return fmt::format(
      "nothing fits, and no --target-memory would do: the {} plan{} needs {} ({} as a target), and "
      "{}; it takes a machine with more memory, a shorter --sequence-length or a smaller model",
      plan::all_bytes(lacking) > 0 ? "nearest" : "smallest",
      flags.empty() ? "" : ", with " + flags + ",", needs_text(nearest.needs, budget),
      byte_size_text(least), fmt::join(short_of, ", and "));
}

/// Says how much memory the smallest plan needs, and whether the machine can have it.
static std::string smallest_text(const plan::PlannerAnswer& answer, const ResolvedConfig& config,
                                 const MemoryBudget& budget) {
  plan::PlannedStep smallest = *answer.smallest;
  smallest.limits = {};
  const std::int64_t least = least_target(smallest, config, budget);
  const bool works =
      !is_beyond(least, budget) && plan::all_bytes(lacking_beside(smallest.needs, budget)) == 0;
  const std::optional<plan::PlannedStep>& nearest = answer.nearest;
  const plan::MemoryNeeds lacking =
      nearest ? lacking_beside(nearest->needs, budget) : plan::MemoryNeeds{};
  if (!works)
    return nearest_text(plan::all_bytes(lacking) > 0 ? *nearest : smallest, config, budget);
  const std::string flags = flags_text(changes_to(config.options, smallest, budget));
  std::string text = fmt::format(
      "nothing fits; the least that works is --target-memory {}{}: {}; give more memory, a "
      "shorter --sequence-length or a smaller model",
      byte_size_text(least), flags.empty() ? "" : ", with " + flags,
      needs_text(smallest.needs, budget));
  if (plan::all_bytes(lacking) > 0 && least_target(*nearest, config, budget) < least)
    text += fmt::format("; with --target-memory {}, {}",
                        byte_size_text(least_target(*nearest, config, budget)),
                        lacking_text(lacking, nearest->needs, budget));
  return text;
}

std::string describe_refusal(const PlannedRun& planned, const ResolvedConfig& config,
                             const MemoryBudget& budget) {
  const plan::PlannerAnswer& answer = planned.answer;
  if (answer.refusal == plan::PlannerRefusal::too_slow) {
    const plan::PlannedStep& fitting = *answer.fitting;
    return fmt::format(
        "{} {} allows steps that are at most {} % slower than without a limit, and the fastest "
        "that fits takes {:.0f} % longer ({}); choose another strategy or a larger target",
        "--strategy", name_of(config.options.target.strategy),
        std::lround(100 * (plan::most_slowdown(config.options.target.strategy) - 1)),
        100 * (answer.slowdown(fitting) - 1),
        flags_text(changes_to(config.options, fitting, budget)));
  }
  if (!answer.smallest)
    return "nothing fits; give more memory, a shorter --sequence-length or a smaller model" +
           what_would_help(planned, config, budget);
  return smallest_text(answer, config, budget) + what_would_help(planned, config, budget);
}

}  // namespace strata::train
