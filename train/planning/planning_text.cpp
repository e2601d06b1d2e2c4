#include "train/planning/planning_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "core/byte_size.h"
#include "core/format_bytes.h"
#include "core/round_up.h"
#include "core/text_table.h"
#include "plan/disk_writes.h"
#include "train/planning/reasons_text.h"

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
    return fmt::format(" ({} of it of the device for driver and libraries)", beside);
  return fmt::format(
      " ({} of it beside its arenas; the peak that steps print has pages that processes share, "
      "too)",
      beside);
}

/// The changes as flags, in a line: actions alone are pages.
std::string short_flags(std::vector<PlannedOption> changes) {
  for (PlannedOption& change : changes)
    if (change.name == "actions") change.value = "...";
  return flags_text(changes);
}

/// The settings of a step in the same way.
std::string short_flags(const plan::PlannedStep& step, const ResolvedConfig& config,
                        const MemoryBudget& budget) {
  return short_flags(changes_to(config.options, step, budget));
}

/// The settings of a step as all flags that must be typed for it, that of a drive's folder
/// included.
std::string flags_to_type(const plan::PlannedStep& step, const ResolvedConfig& config,
                          const MemoryBudget& budget) {
  const std::string flags = short_flags(step, config, budget);
  if (!lacks_folder(config.options, step.choices)) return flags;
  return flags + (flags.empty() ? "" : " ") + "--nvme-path DIR";
}

/// "a step of 8 samples of 1024 tokens takes 4.46 s, ...", as foreseen.
std::string speed_text(const plan::PlannedStep& step, const TrainOptions& options,
                       const MemoryBudget& budget) {
  const int ranks = budget.seat.ranks;
  const std::int64_t samples = options.micro_batch * options.accumulation * leaves(options, ranks);
  const double seconds = step.forecast.step_seconds;
  return fmt::format(
      "a step of {} {} of {} tokens in {} ({} {} x micro-batch {} x accumulation {}) is foreseen "
      "to take "
      "{:.3g} s, {} tokens/s, bound by {} ({:.0f} % of the step), at {} rates",
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

}  // namespace

std::string needs_text(const plan::MemoryNeeds& needs, const MemoryBudget& budget) {
  const bool on_cpu = budget.machine.host_is_device();
  const std::int64_t arenas = plan::scarce_bytes(needs, budget.machine);
  std::string text = format_bytes(arenas + budget.foreseen_beside_bytes) +
                     (on_cpu ? " per process" : " of the device");
  if (budget.beside_bytes > budget.foreseen_beside_bytes)
    text += fmt::format(" ({} as targets count it, with all pages that processes share)",
                        format_bytes(arenas + budget.beside_bytes));
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

/// "the drives of a host are worn out after 5.8 days of such steps\n" if that is within a year.
static std::string wear_warning(const plan::PlannedStep& step, const MemoryBudget& budget) {
  constexpr double kYear = 365;
  const double days = plan::days_until_written(
      budget.machine.disk, static_cast<double>(step.disk_written_bytes) * budget.local_ranks,
      step.forecast.step_seconds);
  if (days <= 0 || days > kYear) return "";
  return fmt::format("the drives of a host are worn out after {:.3g} days of such steps\n", days);
}

/// Differences that are too small to be told.
static bool is_slower(const plan::PlannerAnswer& answer, const plan::PlannedStep& step) {
  constexpr double kNotable = 1.005;
  return answer.unlimited && answer.slowdown(step) > kNotable;
}

/// True if what would be fastest without a limit fits, too, so that no memory is what it lacks.
static bool unlimited_fits(const plan::PlannerAnswer& answer, const MemoryBudget& budget) {
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

/// Says what a search that ended at one of its limits may have missed, and how to go on from it.
/// `first`: what else to try before.
static std::string ended_early_text(std::string_view missed, std::string_view first = "") {
  return fmt::format(
      "\n  the search ended early, and {}: {}give one or two settings yourself, such as --zero N, "
      "--micro-batch N or --layer-major, and it has fewer to compare",
      missed, first);
}

static constexpr std::string_view kTrySmaller = "try a smaller --target-memory than that, or ";

/// Compares with the step that would be fastest if memory had no limit, and names its settings:
/// they may differ in more than what saves memory.
static std::string unlimited_text(const PlannedRun& planned, const MemoryBudget& budget) {
  const plan::PlannerAnswer& answer = planned.answer;
  const std::string flags = short_flags(planned.unlimited_changes);
  return fmt::format(
      "\n  with memory without limit a step would take {:.3g} s{} and need {}; within the target "
      "it "
      "takes {:.3g} times as long",
      answer.unlimited->forecast.step_seconds, flags.empty() ? "" : " with " + flags,
      needs_text(answer.unlimited->needs, budget), answer.slowdown(*answer.chosen));
}

/// Names what limits the arena where the settings are typed without a target.
static std::string limit_text(const PlannedRun& planned) {
  const std::string limit = arena_limit_text(planned.changes, planned.answer.chosen->needs.device);
  if (limit.empty()) return "";
  return fmt::format("\n  without --target-memory, these settings go with {}", limit);
}

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
  text += fmt::format("\n  it needs {}{}\n  {}", needs_text(chosen.needs, budget),
                      beside_text(budget), speed_text(chosen, config.options, budget)) +
          times_text(budget);
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

std::vector<Compared> compared(const PlannedRun& planned, const ResolvedConfig& config,
                               const MemoryBudget& budget) {
  const auto flags_of = [&](const plan::Choices& choices) {
    return flags_text(changes_to(config.options, {.choices = choices}, budget));
  };
  const std::optional<plan::PlannedStep>& chosen = planned.answer.chosen;
  const std::string chosen_flags = chosen ? flags_of(chosen->choices) : "";
  std::vector<Compared> rows;
  std::map<std::string, std::size_t> row_of;  // by flags
  for (const plan::Attempt& attempt : planned.answer.attempts) {
    const std::string flags = flags_of(attempt.choices);
    const auto [at, is_new] = row_of.try_emplace(flags, rows.size());
    if (is_new) rows.push_back({.attempt = attempt, .is_chosen = chosen && flags == chosen_flags});
    plan::Attempt& row = rows[at->second].attempt;
    if (attempt.seconds || !row.seconds) row = attempt;
  }
  for (Compared& row : rows) {
    if (!row.is_chosen) continue;
    row.attempt.seconds = chosen->forecast.step_seconds;
    row.attempt.lacks.clear();
  }
  std::ranges::stable_sort(rows, {}, [](const Compared& row) {
    constexpr double kNever = std::numeric_limits<double>::infinity();
    return std::pair(row.attempt.seconds.value_or(kNever), !row.is_chosen);
  });
  return rows;
}

std::string describe_attempts(const PlannedRun& planned, const ResolvedConfig& config,
                              const MemoryBudget& budget) {
  using enum TextTable::Align;
  TextTable table({{"s/step", right}, {"guessed", right}, {"settings"}});
  for (const auto& [attempt, is_chosen] : compared(planned, config, budget)) {
    const std::string flags = short_flags({.choices = attempt.choices}, config, budget);
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

/// True if the strategy may refuse what fits, because its steps are slow.
static bool demands_speed(const ResolvedConfig& config) {
  return std::isfinite(plan::most_slowdown(config.options.target.strategy));
}

/// Names a strategy that demands no speed, and takes no smaller part of a target: "--strategy
/// balanced "; "" if the one that is asked demands none.
static std::string_view without_demand(const ResolvedConfig& config) {
  if (!demands_speed(config)) return "";
  return config.options.target.strategy == plan::Strategy::aggressive ? "--strategy maximum "
                                                                      : "--strategy balanced ";
}

/// ", where ds.json:13: strata.host_memory gives 80MB": the limit, if a file says it, since no flag
/// that was typed is to blame then; "" for a flag.
static std::string limit_of_file(const ResolvedConfig& config) {
  for (const ResolvedField& field : config.fields)
    if (field.name == "offload.host_memory_bytes" && field.origin == Origin::file)
      return fmt::format(", where {} gives {}", field.where, field.value);
  return "";
}

/// "the host has 113.25 GiB to give, 256.00 MiB too little": what the host of a device and its
/// drives lack of `lacking`, for all of its ranks; "": nothing.
static std::string lacking_text(const plan::MemoryNeeds& lacking, const plan::MemoryNeeds& needs,
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
static std::string nearest_text(plan::PlannedStep nearest, const ResolvedConfig& config,
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
static std::string target_for(plan::PlannedStep step, const ResolvedConfig& config,
                              const MemoryBudget& budget) {
  step.limits = {};  // the target sets them
  const std::string flags = flags_to_type(step, config, budget);
  return fmt::format("--target-memory {}{}", target_size_text(least_target(step, config, budget)),
                     flags.empty() ? "" : ", with " + flags);
}

static std::string strategy_text(const ResolvedConfig& config) {
  return fmt::format("--strategy {}", name_of(config.options.target.strategy));
}

/// "--strategy aggressive allows steps that are at most 40 % slower than without a limit".
static std::string demand_text(const ResolvedConfig& config) {
  return fmt::format("{} allows steps that are at most {} % slower than without a limit",
                     strategy_text(config),
                     std::lround(100 * (plan::most_slowdown(config.options.target.strategy) - 1)));
}

/// Says which target the strategy takes that refuses one that others may take.
static std::string too_slow_text(const plan::PlannerAnswer& answer, const ResolvedConfig& config,
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
static std::string least_text(const plan::PlannerAnswer& answer, const ResolvedConfig& config,
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
