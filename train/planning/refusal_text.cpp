#include "train/planning/refusal_text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/byte_size.h"
#include "core/format_bytes.h"
#include "core/round_up.h"
#include "train/planning/ended_early.h"
#include "train/planning/reasons_text.h"
#include "train/planning/short_flags.h"
#include "train/planning/target_needs.h"

namespace strata::train {
namespace {

constexpr std::string_view kTrySmaller = "try a smaller --target-memory than that, or ";

/// The cheapest changes, and settings that forbid smaller plans.
std::string what_would_help(const PlannedRun& planned, const ResolvedConfig& config,
                            const MemoryBudget& budget) {
  return forbidden_text(planned, config, budget) +
         changes_text(planned.answer.changes, config.options, budget.machine);
}

/// True if the strategy may refuse what fits, because its steps are slow.
bool demands_speed(const ResolvedConfig& config) {
  return std::isfinite(plan::most_slowdown(config.options.target.strategy));
}

/// Names a strategy that demands no speed, and takes no smaller part of a target: "--strategy
/// balanced "; "" if the one that is asked demands none.
std::string_view without_demand(const ResolvedConfig& config) {
  if (!demands_speed(config)) return "";
  return config.options.target.strategy == plan::Strategy::aggressive ? "--strategy maximum "
                                                                      : "--strategy balanced ";
}

/// ", where ds.json:13: strata.host_memory gives 80MB": the limit, if a file says it, since no flag
/// that was typed is to blame then; "" for a flag.
std::string limit_of_file(const ResolvedConfig& config) {
  for (const ResolvedField& field : config.fields)
    if (field.name == "offload.host_memory_bytes" && field.origin == Origin::file)
      return fmt::format(", where {} gives {}", field.where, field.value);
  return "";
}

/// "the host has 113.25 GiB to give, 256.00 MiB too little": what the host of a device and its
/// drives lack of `lacking`, for all of its ranks; "": nothing.
std::string lacking_text(const plan::MemoryNeeds& lacking, const plan::MemoryNeeds& needs,
                         const ResolvedConfig& config, const MemoryBudget& budget) {
  const auto all = [&](std::int64_t of_rank) { return of_rank * budget.local_ranks; };
  std::string text;
  if (lacking.host > 0) {
    text = fmt::format("the host has {} to give{}, {} too little", format_bytes(budget.host_bytes),
                       limit_of_file(config), format_bytes(all(lacking.host)));
    constexpr std::int64_t kRound = 1'000'000;
    const std::int64_t needed = round_up(all(needs.host), kRound);
    if (needed <= budget.most_host_bytes)
      text += fmt::format(
          " ({}--host-memory {} gives that, and leaves {} to others; without it a twentieth stays "
          "free)",
          without_demand(config), byte_size_text(needed),
          format_bytes(budget.most_host_bytes - needed));
  }
  if (lacking.disk > 0)
    text += fmt::format("{}its drives have {}, {} too little", text.empty() ? "" : ", and ",
                        format_bytes(budget.disk_bytes), format_bytes(all(lacking.disk)));
  return text;
}

/// Says which memory is short for the plan that comes nearest to what there is.
std::string nearest_text(plan::PlannedStep nearest, const ResolvedConfig& config,
                         const MemoryBudget& budget) {
  nearest.limits = {};
  const std::string flags = flags_to_type(nearest, config, budget);
  const std::int64_t least = least_target(nearest, config, budget);
  const plan::MemoryNeeds lacking = lacking_beside(nearest.needs, budget);
  std::vector<std::string> short_of;
  if (is_beyond(least, budget))
    short_of.push_back(fmt::format(
        "{} has {}", budget.machine.host_is_device() ? "each process on this host" : "the device",
        format_bytes(budget.most_bytes)));
  if (const std::string text = lacking_text(lacking, nearest.needs, config, budget); !text.empty())
    short_of.push_back(text);
  const std::int64_t limit = needed_host_limit(nearest, config, budget);
  const bool lacks_limit_alone = limit > 0 && short_of.empty();
  if (limit > 0)
    short_of.push_back(fmt::format("its arenas need --host-memory {}{}", byte_size_text(limit),
                                   limit_of_file(config)));
  return fmt::format(
      "nothing fits, and no --target-memory would do: the {} plan{} needs {} ({} as a target), and "
      "{}; it takes {}, a shorter --sequence-length or a smaller model",
      plan::all_bytes(lacking) > 0 ? "nearest" : "smallest",
      flags.empty() ? "" : ", with " + flags + ",", needs_text(nearest.needs, budget),
      target_size_text(least), fmt::join(short_of, ", and "),
      lacks_limit_alone ? "that" : "a machine with more memory");
}

/// "--target-memory 12GB, with --zero 3": the least target for `step`, and its settings.
std::string target_for(plan::PlannedStep step, const ResolvedConfig& config,
                       const MemoryBudget& budget) {
  step.limits = {};  // the target sets them
  const std::string flags = flags_to_type(step, config, budget);
  return fmt::format("--target-memory {}{}", target_size_text(least_target(step, config, budget)),
                     flags.empty() ? "" : ", with " + flags);
}

std::string strategy_text(const ResolvedConfig& config) {
  return fmt::format("--strategy {}", name_of(config.options.target.strategy));
}

/// "--strategy aggressive allows steps that are at most 40 % slower than without a limit".
std::string demand_text(const ResolvedConfig& config) {
  return fmt::format("{} allows steps that are at most {} % slower than without a limit",
                     strategy_text(config),
                     std::lround(100 * (plan::most_slowdown(config.options.target.strategy) - 1)));
}

/// Says which target the strategy takes that refuses one that others may take.
std::string too_slow_text(const plan::PlannerAnswer& answer, const ResolvedConfig& config,
                          const MemoryBudget& budget) {
  plan::PlannedStep fitting = *answer.fitting;
  fitting.limits = {};
  const std::string text =
      fmt::format("{}, and with this target they are {:.0f} % slower ({}); ", demand_text(config),
                  100 * (answer.slowdown(fitting) - 1), flags_to_type(fitting, config, budget));
  const bool names_least = names_least_target(answer, config, budget);
  const std::string early = answer.complete
                                ? ""
                                : ended_early_text("less memory may do, or a faster step fit",
                                                   names_least ? kTrySmaller : "");
  if (!names_least)
    return text + "choose another strategy: no target that the machine has would do with this one" +
           early;
  return fmt::format("{}the least that works is {}; choose that, or another strategy{}", text,
                     target_for(*answer.accepted, config, budget), early);
}

/// Says how much memory the least that works needs, and whether the machine can have it.
std::string least_text(const plan::PlannerAnswer& answer, const ResolvedConfig& config,
                       const MemoryBudget& budget) {
  const plan::PlannedStep& smallest = *answer.smallest;
  const plan::PlannedStep& works = answer.accepted ? *answer.accepted : smallest;
  const std::optional<plan::PlannedStep>& nearest = answer.nearest;
  const plan::MemoryNeeds lacking =
      nearest ? lacking_beside(nearest->needs, budget) : plan::MemoryNeeds{};
  const bool lacks_other = plan::all_bytes(lacking) > 0;
  if (!is_to_be_had(smallest, config, budget))
    return nearest_text(lacks_other ? *nearest : smallest, config, budget);
  if (!is_to_be_had(works, config, budget))
    return fmt::format(
        "nothing fits, and no --target-memory would do: {}, and such steps need {}; --strategy "
        "maximum works with {}",
        demand_text(config), needs_text(works.needs, budget), target_for(smallest, config, budget));
  const std::int64_t least = least_target(works, config, budget);
  std::string text = fmt::format(
      "nothing fits; the least that works is {}: {}; give more memory, a shorter "
      "--sequence-length or a smaller model",
      target_for(works, config, budget), needs_text(works.needs, budget));
  if (const std::int64_t less = least_target(smallest, config, budget); less < least)
    text +=
        fmt::format("; --strategy maximum works with --target-memory {}", target_size_text(less));
  if (lacks_other && least_target(*nearest, config, budget) < least)
    text += fmt::format("; with --target-memory {}, {}",
                        target_size_text(least_target(*nearest, config, budget)),
                        lacking_text(lacking, nearest->needs, config, budget));
  return text;
}

}  // namespace

bool names_least_target(const plan::PlannerAnswer& answer, const ResolvedConfig& config,
                        const MemoryBudget& budget) {
  const std::optional<plan::PlannedStep>& least =
      answer.refusal == plan::PlannerRefusal::too_slow ? answer.accepted : answer.smallest;
  return least && is_to_be_had(*least, config, budget);
}

std::string describe_refusal(const PlannedRun& planned, const ResolvedConfig& config,
                             const MemoryBudget& budget) {
  const plan::PlannerAnswer& answer = planned.answer;
  if (answer.refusal == plan::PlannerRefusal::too_slow)
    return too_slow_text(answer, config, budget);
  std::string text;
  if (budget.leaves_no_arena)
    text =
        fmt::format("{} alone takes {}, and ", budget.taken_by, format_bytes(budget.beside_bytes));
  text += answer.smallest
              ? least_text(answer, config, budget)
              : "nothing fits; give more memory, a shorter --sequence-length or a smaller model";
  if (!answer.complete)
    text += ended_early_text("less memory may do",
                             names_least_target(answer, config, budget) ? kTrySmaller : "");
  return text + what_would_help(planned, config, budget);
}

}  // namespace strata::train
