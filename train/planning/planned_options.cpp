#include "train/planning/planned_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "compile/compile.h"
#include "core/byte_size.h"
#include "core/check.h"
#include "plan/foresee.h"
#include "train/config/flag_table.h"
#include "train/config/make_plan.h"
#include "train/config/option_fields.h"

namespace strata::train {
namespace {

constexpr std::string_view kArenaLimit = "offload.device_memory_bytes";

/// True if neither a flag nor the file says what the option is.
bool is_free(const ResolvedConfig& config, std::string_view option) {
  const Origin origin = config.origin_of(option);
  return origin != Origin::file && origin != Origin::command_line;
}

/// The same run with other choices.
TrainOptions with_choices(TrainOptions options, const plan::Choices& choices) {
  options.zero.stage = choices.sharding.stage;
  options.micro_batch = choices.micro_batch;
  options.accumulation = choices.micro_steps;
  options.activation_checkpointing = choices.again == plan::Again::everything;
  options.recompute_norms = choices.again == plan::Again::norms;
  options.checkpoint_ratio = choices.again_part;
  options.actions = choices.actions;
  OffloadOptions& offload = options.offload;
  offload.layer_major = choices.layer_major;
  offload.gradients = choices.sums_away;
  offload.optimizer = choices.optimizer;
  offload.optimizer_ratio = choices.optimizer_part;
  offload.parameters = choices.parameters;
  offload.activations = choices.activations;
  return options;
}

/// Adds to the forecast what evaluations and saves on the way take, if there are some.
void foresee_between_steps(const plan::Search& search, const TrainOptions& options,
                           plan::PlannedStep& chosen) {
  const plan::ForecastRequest request = between_steps(options);
  if (!request.evaluate && !request.snapshot) return;
  const compile::Compiled compiled =
      compile::compile(search.model, chosen.plan, search.machine, search.where);
  if (!compiled.fit.fits()) return;
  const plan::Forecast forecast = plan::foresee(compiled.programs, search.machine, request);
  chosen.forecast.drain_seconds = forecast.drain_seconds;
  chosen.forecast.evaluate_seconds = forecast.evaluate_seconds;
  chosen.forecast.snapshot_step_seconds = forecast.snapshot_step_seconds;
}

}  // namespace

std::span<const std::string_view> options_of(plan::Setting setting) {
  using enum plan::Setting;
  static constexpr std::string_view kStage[] = {"zero.stage"};
  static constexpr std::string_view kMicroBatch[] = {"micro_batch", "accumulation"};
  static constexpr std::string_view kSaved[] = {"activation_checkpointing", "recompute_norms",
                                                "checkpoint_segments", "checkpoint_ratio",
                                                "actions"};
  static constexpr std::string_view kActivations[] = {"offload.activations", "actions"};
  static constexpr std::string_view kParameters[] = {"offload.parameters",
                                                     "offload.parameter_host_elements"};
  static constexpr std::string_view kOptimizer[] = {"offload.optimizer", "offload.optimizer_ratio",
                                                    "offload.updates"};
  static constexpr std::string_view kOrder[] = {"offload.layer_major"};
  static constexpr std::string_view kSums[] = {"offload.gradients"};
  switch (setting) {
    case stage:
      return kStage;
    case micro_batch:
      return kMicroBatch;
    case saved:
      return kSaved;
    case activations:
      return kActivations;
    case parameters:
      return kParameters;
    case optimizer:
      return kOptimizer;
    case order:
      return kOrder;
    case sums:
      return kSums;
    case farthest:
    case all:
      break;
  }
  return {};
}

bool makes_setting(std::string_view option, plan::Setting setting) {
  if (setting == plan::Setting::all) {
    for (int i = 0; i < static_cast<int>(plan::Setting::all); ++i)
      if (makes_setting(option, static_cast<plan::Setting>(i))) return true;
    return false;
  }
  return std::ranges::find(options_of(setting), option) != options_of(setting).end();
}

plan::ForecastRequest between_steps(const TrainOptions& options) {
  const SaveInterval& every = options.checkpoint.every;
  const bool evaluates = evaluates_during(options), saves = every.steps > 0 || every.seconds > 0;
  return {.drain = evaluates || saves, .evaluate = evaluates, .snapshot = saves, .observers = {}};
}

bool may_be_planned(std::string_view option) {
  return makes_setting(option, plan::Setting::all) || option == kArenaLimit ||
         option == "offload.host_memory_bytes" || option == "state_recipe";
}

plan::Freedom freedom_of(const ResolvedConfig& config, bool has_drive) {
  using enum plan::Setting;
  const auto all_free = [&](plan::Setting setting) {
    return std::ranges::all_of(options_of(setting),
                               [&](auto option) { return is_free(config, option); });
  };
  plan::Freedom free;
  free.micro_batch = all_free(micro_batch);
  free.stage = all_free(stage);
  free.saved = all_free(saved);
  free.order = all_free(order);
  free.sums = all_free(sums);
  free.optimizer = all_free(optimizer);
  free.parameters = all_free(parameters);
  free.activations = all_free(activations);
  free.farthest = config.options.target.offload;
  if (!has_drive) free.farthest = std::min(free.farthest, plan::Home::host);
  return free;
}

plan::TargetTerms terms_of(const MemoryBudget& budget) {
  constexpr std::int64_t kMostUnit = 1'000'000;
  return {budget.beside_bytes, kMostUnit, budget.most_bytes};
}

PlannedRun plan_options(const ProgramRequest& request, const ResolvedConfig& config,
                        const MemoryBudget& budget) {
  const compile::TrainingModel model = training_model(request);
  runtime::Plan frame = requested_frame(request, budget.machine, budget.seat.ranks);
  frame.budget_bytes[static_cast<std::size_t>(runtime::Tier::device)] = budget.device_bytes;
  if (budget.host_bytes > 0)
    frame.host_bytes = std::min(frame.host_bytes, budget.host_bytes / budget.local_ranks);
  const plan::Search search{.model = model,
                            .plan = frame,
                            .machine = budget.machine,
                            .where = comm::MeshSeat::of(budget.seat),
                            .savings = savings_of(request.options),
                            .save_every_steps = request.options.checkpoint.every.steps,
                            .save_every_seconds = request.options.checkpoint.every.seconds};
  PlannedRun planned{.answer = plan::plan_for_budget(
                         {.search = search,
                          .asked = choices_of(request.options),
                          .free = freedom_of(config, budget.has_drive),
                          .strategy = request.options.target.strategy,
                          .disk_bytes = budget.disk_of_rank(),
                          .target = plan::MemoryLimits{budget.target_bytes, budget.target_bytes},
                          .terms = terms_of(budget),
                          .farthest_told = request.options.target.offload})};
  if (std::optional<plan::PlannedStep> unlimited = planned.answer.unlimited) {
    unlimited->limits = {};  // they are no settings
    planned.unlimited_changes = changes_to(request.options, *unlimited, budget);
  }
  if (auto& chosen = planned.answer.chosen) {
    planned.changes = changes_to(request.options, *chosen, budget);
    foresee_between_steps(search, request.options, *chosen);
  }
  return planned;
}

std::vector<PlannedOption> changes_to(const TrainOptions& asked, const plan::PlannedStep& chosen,
                                      const MemoryBudget& budget) {
  TrainOptions before = asked, after = with_choices(asked, chosen.choices);
  if (chosen.limits.device_bytes != kUnlimitedMemory)
    after.offload.device_memory_bytes = chosen.limits.device_bytes;
  if (chosen.limits.host_bytes != kUnlimitedMemory &&
      (chosen.choices.moves_state() || budget.machine.host_is_device()))
    if (asked.offload.host_memory_bytes / budget.local_ranks != chosen.limits.host_bytes)
      after.offload.host_memory_bytes = chosen.limits.host_bytes * budget.local_ranks;
  const std::vector<OptionField> old = option_fields(before), now = option_fields(after);
  std::vector<PlannedOption> changes;
  for (std::size_t i = 0; i < now.size(); ++i)
    if (std::string value = text_of(now[i]); value != text_of(old[i]))
      changes.push_back({std::string(now[i].name), std::move(value)});
  return changes;
}

void set_planned(const std::vector<PlannedOption>& changes, ResolvedConfig& config) {
  for (const PlannedOption& change : changes) {
    std::string note;
    const std::string wrong = assign(config.options, change.name, {change.value}, note);
    STRATA_CHECK(wrong.empty(), change.name, wrong);
    for (ResolvedField& field : config.fields)
      if (field.name == change.name) {
        field.value = change.value;
        field.origin = Origin::planned;
        field.where = "--target-memory";
        field.left_open = false;
      }
  }
}

std::string option_text(std::string_view option, std::string_view value) {
  const std::string usage = flag_of(option);  // "--zero N"
  const std::string flag = usage.substr(0, usage.find(' '));
  if (value == "true") return flag;
  return value.starts_with('[') ? fmt::format("{} '{}'", flag, value)  // as a shell takes it
                                : fmt::format("{} {}", flag, value);
}

std::string flags_text(const std::vector<PlannedOption>& changes) {
  std::vector<std::string> flags;
  for (const PlannedOption& change : changes) {
    flags.push_back(option_text(change.name, change.value));
  }
  return fmt::format("{}", fmt::join(flags, " "));
}

std::string flags_beside_target(std::vector<PlannedOption> changes) {
  std::erase_if(changes, [](const PlannedOption& change) { return change.name == kArenaLimit; });
  return flags_text(changes);
}

std::string arena_limit_text(const std::vector<PlannedOption>& changes, std::int64_t used) {
  constexpr std::int64_t kMB = 1'000'000;
  const auto limit = std::ranges::find(changes, kArenaLimit, &PlannedOption::name);
  if (limit == changes.end()) return "";
  const std::int64_t bytes = parse_byte_size(limit->value).value_or(0);
  const std::int64_t below = bytes - bytes % kMB;
  const std::string rounded = byte_size_text(below);
  const bool is_enough = below >= used && below > 0;
  return option_text(limit->name,
                     is_enough && rounded.size() < limit->value.size() ? rounded : limit->value);
}

std::string to_lines(const std::vector<PlannedOption>& changes) {
  std::string lines;
  for (const PlannedOption& change : changes)
    lines += fmt::format("{} {}\n", change.name, change.value);
  return lines;
}

std::vector<PlannedOption> from_lines(const std::string& lines) {
  std::vector<PlannedOption> changes;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t space = line.find(' ');
    STRATA_CHECK(space != std::string::npos, line);
    changes.push_back({line.substr(0, space), line.substr(space + 1)});
  }
  return changes;
}

}  // namespace strata::train
