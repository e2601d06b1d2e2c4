#include "train/planning/reasons_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/byte_size.h"
#include "core/format_bytes.h"
#include "train/config/flag_table.h"
#include "train/planning/target_needs.h"

namespace strata::train {
namespace {

/// Changes of a refused run that are printed; more would hide the best.
constexpr std::size_t kMostChanges = 5;

/// Actions are pages of text.
std::string short_option_text(const std::string& name, const std::string& value) {
  return option_text(name, name == "actions" ? "..." : value);
}

/// "1.20 GiB less of the device"; "" for no bytes.
void add_bytes(std::int64_t more, std::string_view where, std::vector<std::string>& parts) {
  if (more == 0) return;
  parts.push_back(
      fmt::format("{} {} {}", format_bytes(std::abs(more)), more > 0 ? "more" : "less", where));
}

std::string speed_text(const plan::PricedChange& change) {
  constexpr double kAsFast = 0.0005;
  const double slowdown = change.slowdown(), seconds = std::abs(change.seconds);
  if (std::abs(slowdown) < kAsFast) return "steps as fast";
  const std::string time =
      seconds < 1 ? fmt::format("{:.3g} ms", 1e3 * seconds) : fmt::format("{:.3g} s", seconds);
  return fmt::format("steps {:.1f} % ({}) {}", 100 * std::abs(slowdown), time,
                     slowdown > 0 ? "slower" : "faster");
}

}  // namespace

bool lacks_folder(const TrainOptions& options, const plan::Choices& choices) {
  return choices.uses(plan::Home::disk) && options.offload.nvme_paths.empty();
}

std::string planned_flags(const PlannedRun& planned, plan::Setting setting) {
  std::vector<std::string> flags;
  for (const PlannedOption& change : planned.changes)
    if (makes_setting(change.name, setting))
      flags.push_back(short_option_text(change.name, change.value));
  return fmt::format("{}", fmt::join(flags, " "));
}

std::string flags_to(const TrainOptions& asked, const plan::Choices& choices) {
  std::string flags = flags_text(changes_to(asked, {.choices = choices}, {}));
  if (lacks_folder(asked, choices)) flags += " --nvme-path DIR";
  return flags;
}

std::string allowed_homes_flag(plan::Home farthest) {
  if (farthest == plan::Home::disk) return "";
  return fmt::format("--allow-offload {}", farthest == plan::Home::device ? "none" : "host");
}

std::string given_flags(const ResolvedConfig& config, const MemoryBudget& budget,
                        plan::Setting setting) {
  std::vector<std::string> given;
  for (const ResolvedField& field : config.fields)
    if (makes_setting(field.name, setting) &&
        (field.origin == Origin::file || field.origin == Origin::command_line))
      given.push_back(flag_of(field.name).starts_with('-')
                          ? short_option_text(field.name, field.value)
                          : field.where + " " + field.value);  // a key alone sets it
  const TargetOptions& target = config.options.target;
  if (setting == plan::Setting::farthest || setting == plan::Setting::all) {
    if (target.offload != plan::Home::disk)
      given.push_back(allowed_homes_flag(target.offload));
    else if (budget.has_drive && target.strategy == plan::Strategy::conservative)
      given.push_back(fmt::format("--strategy {}", name_of(target.strategy)));
  }
  return fmt::format("{}", fmt::join(given, " "));
}

std::string autos_text(const ResolvedConfig& config) {
  std::vector<std::string> flags;
  for (const ResolvedField& field : config.fields)
    if (field.origin == Origin::automatic && !field.where.empty() &&
        makes_setting(field.name, plan::Setting::all))
      flags.push_back(short_option_text(field.name, field.value));
  return flags.empty() ? "" : fmt::format("; \"auto\" stays {}", fmt::join(flags, " "));
}

std::string price_text(const plan::PricedChange& change, const machine::Machine& machine) {
  std::vector<std::string> parts;
  if (machine.host_is_device()) {
    add_bytes(plan::scarce_bytes(change.more, machine), "per process", parts);
  } else {
    add_bytes(change.more.device, "of the device", parts);
    add_bytes(change.more.host, "of host memory per rank", parts);
  }
  add_bytes(change.more.disk, "on the drive", parts);
  if (parts.empty()) parts.emplace_back("as much memory");
  parts.push_back(speed_text(change));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Says which target a recipe that changes results would make do, if any would.
static std::string lossy_refusal_text(const std::optional<LossyChoice>& lossy,
                                      const ResolvedConfig& config, const MemoryBudget& budget) {
  if (!lossy || !is_to_be_had(*lossy->other, config, budget)) return "";
  const std::int64_t least = least_target(*lossy->other, config, budget);
  return fmt::format("\n  with {}, which --allow-lossy permits, --target-memory {} would do",
                     option_text("state_recipe", lossy->recipe), target_size_text(least));
}

/// Names what changes results, and what is had without it.
static std::string lossy_text(const PlannedRun& planned, const MemoryBudget& budget) {
  if (!planned.lossy) return "";
  std::string without = "nothing fits";
  if (const auto& other = planned.lossy->other)
    without = fmt::format("a step takes {:.3g} s and needs {}", other->forecast.step_seconds,
                          needs_text(other->needs, budget));
  return fmt::format("\n  this changes results: {}, which --allow-lossy permits; without it {}",
                     option_text("state_recipe", planned.lossy->recipe), without);
}

std::string reasons_text(const PlannedRun& planned, const MemoryBudget& budget) {
  if (planned.answer.reasons.empty()) return lossy_text(planned, budget);
  double guess = 0;  // a setting that contradicts the others has none, and a compiled one another
  for (const plan::PricedChange& reason : planned.answer.reasons)
    if (!reason.is_compiled) guess = std::max(guess, reason.without_seconds);
  std::string text = "\n  each of these settings taken back alone";
  text += guess > 0 ? fmt::format(", as guessed, of a step of {:.3g} s:", guess) : ":";
  for (const plan::PricedChange& reason : planned.answer.reasons) {
    text += fmt::format("\n    without {}: ", planned_flags(planned, reason.setting));
    if (reason.contradicts)
      text += "contradicts the others";
    else
      text += price_text(reason, budget.machine) + (reason.fits ? "" : "; would not fit");
    if (reason.is_compiled)
      text += fmt::format("; as compiled, of a step of {:.3g} s", reason.without_seconds);
  }
  return text + lossy_text(planned, budget);
}

std::string changes_text(const std::vector<plan::PricedChange>& changes, const TrainOptions& asked,
                         const machine::Machine& machine) {
  if (changes.empty()) return "";
  std::string text =
      "\n  changes of one setting, those first that save most bytes for their time, as guessed and "
      "beside the settings without the change:";
  for (std::size_t i = 0; i < std::min(changes.size(), kMostChanges); ++i)
    text += fmt::format("\n    {}: {}", flags_to(asked, changes[i].choices),
                        price_text(changes[i], machine));
  return text;
}

/// The needs of what freeing a setting reaches. A schedule saves about as many bytes of the device
/// as that of `smallest` does; of the memories beside it, choices take what they need without one.
static plan::PlannedStep reached_by(const plan::PricedChange& freed,
                                    const plan::PlannedStep& smallest,
                                    const machine::Machine& machine) {
  plan::PlannedStep smaller{.needs = freed.needs};
  smaller.needs.device = smallest.needs.device + freed.more.device;
  if (machine.host_is_device()) smaller.needs.host = smallest.needs.host + freed.more.host;
  return smaller;
}

/// "about --target-memory 12GB would do, ": what freeing a setting reaches; "" if other memories
/// than that of a target would still be short.
static std::string reached_text(const plan::PlannedStep& smallest, const plan::PricedChange& freed,
                                const ResolvedConfig& config, const MemoryBudget& budget) {
  const plan::PlannedStep smaller = reached_by(freed, smallest, budget.machine);
  const plan::MemoryNeeds lacking = lacking_beside(smaller.needs, budget);
  if (plan::all_bytes(lacking) > 0)
    return fmt::format(
        "still lacks {} of {}, ",
        format_bytes((lacking.host > 0 ? lacking.host : lacking.disk) * budget.local_ranks),
        lacking.host > 0 ? "host memory" : "the drives");
  if (const std::int64_t limit = needed_host_limit(smaller, config, budget); limit > 0)
    return fmt::format("still needs --host-memory {}, ", byte_size_text(limit));
  const std::int64_t least = least_target(smaller, config, budget);
  if (is_beyond(least, budget))
    return fmt::format("about {} as a target, which still is more than there is, ",
                       target_size_text(least));
  return fmt::format("about --target-memory {} would do, ", target_size_text(least));
}

std::vector<plan::PricedChange> forbidden_targets(const PlannedRun& planned,
                                                  const ResolvedConfig& config,
                                                  const MemoryBudget& budget) {
  std::vector<plan::PricedChange> forbidden = planned.answer.forbidden;
  const std::optional<plan::PlannedStep>& smallest = planned.answer.smallest;
  constexpr std::int64_t kNotablyLess = 1'000'000;  // guesses tell no less apart
  if (smallest && is_to_be_had(*smallest, config, budget))
    std::erase_if(forbidden, [&](const plan::PricedChange& freed) {
      return least_target(reached_by(freed, *smallest, budget.machine), config, budget) >
             least_target(*smallest, config, budget) - kNotablyLess;
    });
  return forbidden;
}

std::string forbidden_text(const PlannedRun& planned, const ResolvedConfig& config,
                           const MemoryBudget& budget) {
  const std::vector<plan::PricedChange> forbidden = forbidden_targets(planned, config, budget);
  std::string text = lossy_refusal_text(planned.lossy, config, budget);
  if (forbidden.empty()) return text;
  text += "\n  settings that forbid smaller plans, each of them left open, as guessed:";
  for (const plan::PricedChange& freed : forbidden) {
    std::vector<std::string> changes;
    if (const std::string given = given_flags(config, budget, freed.setting); !given.empty())
      changes.push_back("without " + given);
    if (lacks_folder(config.options, freed.choices)) changes.emplace_back("with --nvme-path DIR");
    text += fmt::format("\n    {}: ", fmt::join(changes, ", "));
    text += reached_text(*planned.answer.smallest, freed, config, budget);
    text += price_text(freed, budget.machine);
  }
  return text;
}

}  // namespace strata::train
