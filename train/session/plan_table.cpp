#include "train/session/plan_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/format_bytes.h"
#include "core/json_writer.h"
#include "core/round_up.h"
#include "core/text_table.h"
#include "plan/disk_writes.h"
#include "train/planning/compared_plans.h"
#include "train/planning/drive_wear.h"
#include "train/planning/faster_than_asked.h"
#include "train/planning/planning_text.h"
#include "train/planning/reasons_text.h"
#include "train/session/progress.h"

namespace strata::train {
namespace {

const plan::PlannedStep& step_of(const PlannedMachine& machine) {
  return *machine.planned.answer.chosen;
}

double tokens_per_step(const PlannedMachine& machine) {
  const TrainOptions& options = machine.config.options;
  return static_cast<double>(options.micro_batch * options.accumulation *
                             leaves(options, machine.budget.seat.ranks) * options.sequence_length);
}

std::int64_t device_total(const PlannedMachine& machine) {
  return plan::scarce_bytes(step_of(machine).needs, machine.budget.machine) +
         machine.budget.foreseen_beside_bytes;
}

/// Host memory of all ranks of a host, beside devices of their own.
std::int64_t host_total(const PlannedMachine& machine) {
  if (machine.budget.machine.host_is_device()) return 0;
  return step_of(machine).needs.host * machine.budget.local_ranks;
}

/// What a run does between its steps: the time for all of it, and a text for people.
struct Between {
  double seconds = 0;
  std::string text;
};

/// Those on the way, after every so many steps, and the one at the end.
Between evaluations_of(const PlannedMachine& machine) {
  const TrainOptions& options = machine.config.options;
  const plan::Forecast& forecast = step_of(machine).forecast;
  if (options.eval_every_steps <= 0 || !forecast.evaluate_seconds) return {};
  const std::int64_t count = (options.steps - 1) / options.eval_every_steps + 1;
  if (options.eval_samples <= 0)
    return {0, fmt::format(", without {} {} (--eval-samples says of how many samples)", count,
                           count == 1 ? "evaluation" : "evaluations")};
  const std::int64_t batches =
      divide_up(options.eval_samples, options.micro_batch * machine.budget.seat.ranks);
  const double seconds =
      static_cast<double>(count) * (forecast.drain_seconds.value_or(0) +
                                    static_cast<double>(batches) * *forecast.evaluate_seconds);
  return {seconds,
          fmt::format(", {} of it for {} {} of {} samples", format_duration(seconds), count,
                      count == 1 ? "evaluation" : "evaluations", options.eval_samples)};
}

/// Returns the number of saves on the way, by steps or by time.
std::int64_t save_count(const PlannedMachine& machine) {
  const TrainOptions& options = machine.config.options;
  const SaveInterval& every = options.checkpoint.every;
  if (every.steps > 0) return (options.steps - 1) / every.steps;
  if (every.seconds <= 0) return 0;
  const double stepping =
      static_cast<double>(options.steps) * step_of(machine).forecast.step_seconds;
  return static_cast<std::int64_t>(stepping / static_cast<double>(every.seconds));
}

/// Returns what saves take from training: a step with a snapshot takes longer, and without room for
/// snapshots steps do not overlap; then to write, which depends on the drive, comes on top.
Between saves_of(const PlannedMachine& machine) {
  const std::int64_t count = save_count(machine);
  if (count == 0) return {};
  const plan::Forecast& forecast = step_of(machine).forecast;
  const bool beside = forecast.snapshot_step_seconds.has_value();
  const double each = beside
                          ? std::max(0.0, *forecast.snapshot_step_seconds - forecast.step_seconds)
                          : forecast.drain_seconds.value_or(0);
  const double seconds = static_cast<double>(count) * each;
  return {seconds, fmt::format(", {} of it for {} {}{}", format_duration(seconds), count,
                               count == 1 ? "save" : "saves",
                               beside ? "" : ", without the time to write them")};
}

/// All steps of a run, with evaluations and saves on the way.
struct WholeRun {
  double tokens = 0;
  double seconds = 0;
  double cost = 0;  ///< 0: no price is known
};

/// True if the command line or a file says what the option is.
bool is_said(const PlannedMachine& machine, std::string_view option) {
  const Origin origin = machine.config.origin_of(option);
  return origin == Origin::file || origin == Origin::command_line;
}

/// Returns nothing if the number of steps is not given.
std::optional<WholeRun> whole_run_of(const PlannedMachine& machine) {
  const TrainOptions& options = machine.config.options;
  const bool goes_by_data = options.epochs > 0 && is_said(machine, "epochs");
  if (goes_by_data || options.steps <= 0 || !is_said(machine, "steps")) return {};
  constexpr double kBillion = 1e9;
  const auto steps = static_cast<double>(options.steps);
  const double stepping = steps * step_of(machine).forecast.step_seconds;
  WholeRun run{.tokens = steps * tokens_per_step(machine),
               .seconds = stepping + evaluations_of(machine).seconds + saves_of(machine).seconds};
  if (machine.price_per_hour > 0)
    run.cost = machine.cost_of_billion() * run.tokens / kBillion * run.seconds / stepping;
  return run;
}

int hosts_of(const PlannedMachine& machine) {
  return static_cast<int>(divide_up(machine.budget.seat.ranks, machine.budget.local_ranks));
}

/// What a planned machine could do faster than the settings that fit there as they are.
struct Faster {
  std::string flags;
  double seconds = 0;  ///< of a step; 0: nothing
};

Faster faster_of(const PlannedMachine& machine) {
  if (!machine.refusal.empty()) return {};
  const auto step = faster_than_asked(machine.planned, machine.budget);
  if (!step) return {};
  return {flags_text(changes_to(machine.config.options, *step, machine.budget)),
          step->forecast.step_seconds};
}

/// "--zero 3: 31 % less time"; "-": nothing is faster.
std::string faster_text(const PlannedMachine& machine) {
  const Faster faster = faster_of(machine);
  if (faster.seconds == 0) return "-";
  return fmt::format("{}: {:.0f} % less time", faster.flags,
                     100 * (1 - faster.seconds / step_of(machine).forecast.step_seconds));
}

std::string amount(std::int64_t bytes) { return bytes > 0 ? format_bytes(bytes) : "-"; }

/// Writes prices under `name`; `flags_of` says which flags each is about.
template <typename FlagsOf>
void write_prices(JsonWriter& json, std::string_view name,
                  const std::vector<plan::PricedChange>& prices, const FlagsOf& flags_of) {
  json.key(name).begin_array();
  for (const plan::PricedChange& price : prices) {
    json.begin_object();
    json.member("setting", name_of(price.setting));
    json.member("flags", flags_of(price));
    json.member("fits", price.fits);
    if (price.is_compiled) json.member("compiled", true);
    if (!price.contradicts) {
      json.member("device_bytes", price.more.device);
      json.member("host_bytes", price.more.host);
      json.member("disk_bytes", price.more.disk);
      json.member("seconds", price.seconds);
    }
    json.end_object();
  }
  json.end_array();
}

/// Writes what was compiled before something was chosen, the fastest first.
void write_compared(JsonWriter& json, const PlannedMachine& machine) {
  json.key("compared").begin_array();
  for (const auto& [attempt, is_chosen] :
       compared(machine.planned, machine.asked, machine.budget)) {
    json.begin_object().member("flags", flags_to(machine.asked.options, attempt.choices));
    json.member("guessed_seconds_per_step", attempt.guessed_seconds);
    if (attempt.seconds) json.member("seconds_per_step", *attempt.seconds);
    if (!attempt.seconds) json.member("lacks", attempt.lacks);
    if (is_chosen) json.member("chosen", true);
    json.end_object();
  }
  json.end_array();
}

void write_refusal(JsonWriter& json, const PlannedMachine& machine) {
  using plan::PricedChange;
  const plan::PlannerAnswer& answer = machine.planned.answer;
  json.member("refusal", machine.refusal);
  write_prices(json, "changes", answer.changes, [&](const PricedChange& change) {
    return flags_to(machine.asked.options, change.choices);
  });
  write_prices(json, "forbidden_by",
               forbidden_targets(machine.planned, machine.asked, machine.budget),
               [&](const PricedChange& freed) {
                 return given_flags(machine.asked, machine.budget, freed.setting);
               });
}

void write_step(JsonWriter& json, const PlannedMachine& machine) {
  const plan::PlannedStep& step = step_of(machine);
  json.member("device_bytes", device_total(machine));
  json.member("device_arena_bytes", step.needs.device);
  json.member("host_bytes", host_total(machine));
  json.member("disk_bytes", step.needs.disk * machine.budget.local_ranks);
  json.member("disk_written_bytes_per_step", machine.written_per_step());
  if (machine.days_of_drives() > 0)
    json.member("days_until_disk_is_written_up", machine.days_of_drives());
  json.member("tokens_per_step", tokens_per_step(machine));
  json.member("seconds_per_step", step.forecast.step_seconds);
  json.member("tokens_per_second", machine.tokens_per_second());
  json.member("bound_by", step.forecast.bound_by);
  json.member("bound_part", step.forecast.bound_part);
  if (machine.planned.answer.unlimited)
    json.member("slowdown", machine.planned.answer.slowdown(step));
  if (const Faster faster = faster_of(machine); faster.seconds > 0)
    json.member("faster_flags", faster.flags).member("faster_seconds_per_step", faster.seconds);
  if (machine.price_per_hour > 0)
    json.member("price_per_billion_tokens", machine.cost_of_billion());
  if (const std::optional<WholeRun> run = whole_run_of(machine)) {
    json.member("run_steps", machine.config.options.steps);
    json.member("run_tokens", run->tokens);
    json.member("run_seconds", run->seconds);
    if (machine.price_per_hour > 0) json.member("run_cost", run->cost);
  }
  json.member("as_asked", machine.planned.answer.is_asked);
  json.member("flags", flags_beside_target(machine.planned.changes));
  json.key("settings").begin_object();
  for (const PlannedOption& change : machine.planned.changes)
    json.member(change.name, change.value);
  json.end_object();
  write_prices(json, "reasons", machine.planned.answer.reasons,
               [&](const auto& reason) { return planned_flags(machine.planned, reason.setting); });
}

}  // namespace

double PlannedMachine::tokens_per_second() const {
  return tokens_per_step(*this) / step_of(*this).forecast.step_seconds;
}

double PlannedMachine::cost_of_billion() const {
  constexpr double kHour = 3600, kBillion = 1e9;
  return kBillion / tokens_per_second() / kHour * price_per_hour * budget.seat.ranks;
}

double PlannedMachine::written_per_step() const {
  return static_cast<double>(step_of(*this).disk_written_bytes) * budget.local_ranks;
}

double PlannedMachine::days_of_drives() const {
  return plan::days_until_written(budget.machine.disk, written_per_step(),
                                  step_of(*this).forecast.step_seconds);
}

std::string drive_wear_text(const PlannedMachine& machine) {
  const std::string text = drive_wear_text(machine.budget.machine.disk, machine.written_per_step(),
                                           step_of(machine).forecast.step_seconds);
  return text.empty() ? "" : "  " + text;
}

std::string whole_run_text(const PlannedMachine& machine) {
  const TrainOptions& options = machine.config.options;
  if (options.epochs > 0 && is_said(machine, "epochs"))
    return fmt::format(
        "  {} {} take as many steps as the data have samples for, and plan reads no data: give "
        "--steps N for the time of the run",
        options.epochs, options.epochs == 1 ? "epoch" : "epochs");
  const std::optional<WholeRun> run = whole_run_of(machine);
  if (!run) return "";
  std::string text = fmt::format("  {} steps ({:.0f} tokens) take {}", options.steps, run->tokens,
                                 format_duration(run->seconds));
  if (machine.price_per_hour > 0) text += fmt::format(" and cost {:.2f}", run->cost);
  return text + evaluations_of(machine).text + saves_of(machine).text;
}

std::string plan_table(const std::vector<PlannedMachine>& machines) {
  using enum TextTable::Align;
  std::vector<TextTable::Column> columns{
      {"machine"},          {"ranks", right},      {"hosts", right},       {"each device", right},
      {"each host", right}, {"its drives", right}, {"tokens/step", right}, {"s/step", right},
      {"tokens/s", right},  {"bound by"},          {"slower", right}};
  const bool priced = std::ranges::any_of(
      machines, [](const PlannedMachine& machine) { return machine.price_per_hour > 0; });
  if (priced) columns.push_back({"per 1e9 tokens", right});
  const bool any_faster = std::ranges::any_of(
      machines, [](const PlannedMachine& machine) { return faster_of(machine).seconds > 0; });
  if (any_faster) columns.push_back({"faster with"});
  TextTable table(columns);
  for (const PlannedMachine& machine : machines) {
    std::vector<std::string> cells{machine.name, std::to_string(machine.budget.seat.ranks),
                                   std::to_string(hosts_of(machine))};
    if (!machine.refusal.empty()) {
      cells.resize(columns.size(), "-");
      cells[3] = machine.planned.answer.fitting ? "too slow" : "does not fit";
    } else {
      const plan::PlannedStep& step = step_of(machine);
      const plan::PlannerAnswer& answer = machine.planned.answer;
      const std::string slower =
          answer.unlimited ? fmt::format("{:.0f} %", 100 * (answer.slowdown(step) - 1)) : "-";
      cells.insert(cells.end(), {format_bytes(device_total(machine)), amount(host_total(machine)),
                                 amount(step.needs.disk * machine.budget.local_ranks),
                                 fmt::format("{:.0f}", tokens_per_step(machine)),
                                 fmt::format("{:.3g}", step.forecast.step_seconds),
                                 rate_text(machine.tokens_per_second()),
                                 fmt::format("{} {:.0f} %", step.forecast.bound_by,
                                             100 * step.forecast.bound_part),
                                 slower});
      if (priced) cells.push_back(fmt::format("{:.2f}", machine.cost_of_billion()));
      if (any_faster) cells.push_back(faster_text(machine));
    }
    table.add(std::move(cells));
  }
  return table.text();
}

std::string plan_json(const std::vector<PlannedMachine>& machines, bool explains) {
  JsonWriter json;
  json.begin_array();
  for (const PlannedMachine& machine : machines) {
    json.begin_object();
    json.member("machine", machine.name);
    json.member("ranks", machine.budget.seat.ranks);
    json.member("hosts", hosts_of(machine));
    json.member("fits", machine.refusal.empty());
    if (machine.refusal.empty())
      write_step(json, machine);
    else
      write_refusal(json, machine);
    if (explains) write_compared(json, machine);
    json.end_object();
  }
  json.end_array();
  return json.finish() + "\n";
}

}  // namespace strata::train
