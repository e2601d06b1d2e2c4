#include "train/config/settle_steps.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>

#include "core/round_up.h"
#include "kernels/ops/learning_rate.h"
#include "train/config/make_plan.h"

namespace strata::train {
namespace {

/// The interval in transformers if a strategy says "steps" and nothing says how many.
constexpr std::int64_t kUsualInterval = 500;
constexpr std::int64_t kNever = 1'000'000'000'000'000;

std::int64_t rounded_up(double part, std::int64_t whole) {
  return static_cast<std::int64_t>(std::ceil(part * static_cast<double>(whole)));
}

/// Returns how many steps lie between events that happen after each `part` of all steps.
std::int64_t interval_of(double part, std::int64_t steps) {
  return std::max<std::int64_t>(1, rounded_up(part, steps));
}

/// Returns how many steps lie between saves, evaluations or lines for one of transformers'
/// strategies (--save_strategy and its like). `no`: `never`; `steps`: `now`, the number given
/// beside it, or `usual` if that is 0; `epoch`: `epoch`, the steps of an epoch, or `now` if that is
/// not known; no strategy: `now`.
std::int64_t interval(Cadence cadence, std::int64_t now, std::int64_t usual, std::int64_t never,
                      std::int64_t epoch) {
  switch (cadence) {
    case Cadence::never:
      return never;
    case Cadence::steps:
      return now > 0 ? now : usual;
    case Cadence::epoch:
      return epoch > 0 ? epoch : now;
    case Cadence::as_given:
      break;
  }
  return now;
}

bool has_warmup(kernels::ScheduleKind type) {
  return type != kernels::ScheduleKind::one_cycle && type != kernels::ScheduleKind::range_test;
}

}  // namespace

bool has_end(kernels::ScheduleKind type) {
  switch (type) {
    case kernels::ScheduleKind::linear:
    case kernels::ScheduleKind::cosine:
    case kernels::ScheduleKind::warmup_decay:
    case kernels::ScheduleKind::warmup_cosine:
    case kernels::ScheduleKind::cosine_warmup:
    case kernels::ScheduleKind::cosine_restarts:
    case kernels::ScheduleKind::polynomial:
    case kernels::ScheduleKind::warmup_stable_decay:
      return true;
    default:
      return false;
  }
}

std::int64_t steps_per_epoch(const TrainOptions& options, std::int64_t samples) {
  return std::max<std::int64_t>(1, divide_up(samples, options.global_batch));
}

void settle_steps(TrainOptions& options, std::int64_t samples) {
  const bool known = samples > 0;
  const std::int64_t epoch = known ? steps_per_epoch(options, samples) : 0;
  if (options.epochs > 0 && known) options.steps = rounded_up(options.epochs, epoch);
  SchedulerOptions& schedule = options.scheduler;
  if (schedule.warmup_ratio > 0)
    schedule.warmup_num_steps = rounded_up(schedule.warmup_ratio, options.steps);
  if (schedule.min_lr > 0 && options.optimizer.learning_rate > 0)
    schedule.min_lr_rate = schedule.min_lr / options.optimizer.learning_rate;
  if (schedule.ends_with_run) schedule.total_num_steps = options.steps;
  // In transformers evaluations are as frequent as lines, unless their number is given.
  if (options.eval_strategy == Cadence::steps && options.eval_every_steps == 0 &&
      options.eval_part == 0)
    options.eval_part = options.print_part;
  if (options.eval_part > 0)
    options.eval_every_steps = interval_of(options.eval_part, options.steps);
  if (options.print_part > 0)
    options.steps_per_print = interval_of(options.print_part, options.steps);
  options.eval_every_steps =
      interval(options.eval_strategy, options.eval_every_steps,
               options.steps_per_print > 0 ? options.steps_per_print : kUsualInterval, 0, epoch);
  options.steps_per_print =
      interval(options.logging_strategy, options.steps_per_print, kUsualInterval, kNever, epoch);
  SaveInterval& every = options.checkpoint.every;
  if (options.checkpoint.part > 0)
    every = {.steps = interval_of(options.checkpoint.part, options.steps)};
  const Cadence saving = options.checkpoint.strategy;
  if (saving == Cadence::as_given || (saving == Cadence::steps && every.seconds > 0)) return;
  every = {.steps = interval(saving, every.steps, kUsualInterval, 0, epoch), .seconds = 0};
}

std::string describe_epochs(const TrainOptions& options, std::int64_t samples) {
  const bool by_epoch = options.epochs > 0 || options.eval_strategy == Cadence::epoch ||
                        options.checkpoint.strategy == Cadence::epoch ||
                        options.logging_strategy == Cadence::epoch;
  if (!by_epoch) return "";
  const double epochs =
      static_cast<double>(options.steps) / static_cast<double>(steps_per_epoch(options, samples));
  std::string line = fmt::format("{:.6g} {} of {} samples, {} per step: {} steps",
                                 options.epochs > 0 ? options.epochs : epochs,
                                 options.epochs == 1 ? "epoch" : "epochs", samples,
                                 options.global_batch, options.steps);
  if (options.scheduler.warmup_ratio > 0)
    line += fmt::format(", {} of them warm-up", options.scheduler.warmup_num_steps);
  return line;
}

std::string describe_unfinished_warmup(const TrainOptions& options) {
  const SchedulerOptions& schedule = options.scheduler;
  const bool ends_inside = options.steps > 0 && schedule.warmup_num_steps > options.steps;
  if (!ends_inside || !has_warmup(schedule.type)) return "";
  return fmt::format(
      "the warm-up of {} steps is longer than the run of {}: the learning rate is still rising "
      "when it ends",
      schedule.warmup_num_steps, options.steps);
}

std::string describe_ended_schedule(const TrainOptions& options) {
  const std::int64_t end = options.scheduler.total_num_steps, steps = options.steps;
  if (!has_end(options.scheduler.type) || options.scheduler.ends_with_run || end <= 0 ||
      end >= steps)
    return "";
  const auto schedule = kernels::schedule_from(control_attributes(options));
  const auto is_zero = [&](std::int64_t step) {
    return kernels::learning_rate(schedule, step) == 0;
  };
  // Some schedules of DeepSpeed arrive one step later.
  const std::int64_t first = is_zero(end) ? end : end + 1;
  if (first >= steps || !is_zero(first) || !is_zero(steps - 1)) return "";
  const std::int64_t rest = steps - first;
  return fmt::format(
      "the schedule of {} steps ends before the run of {}: the learning rate is 0 for the last {}",
      end, steps, rest == 1 ? "step" : fmt::format("{} of {} steps", rest, steps));
}

}  // namespace strata::train
