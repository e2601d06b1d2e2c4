#include "train/run/step_meter.h"

#include <fmt/format.h>

#include <algorithm>

#include "machine/host_memory.h"
#include "train/config/make_plan.h"
#include "train/report/warming_steps.h"
#include "train/run/format_number.h"

namespace strata::train {

double SmoothedSeconds::add(double seconds) {
  constexpr double kSteps = 10, kSeconds = 20;
  if (steps_ <= 1) mean_ = 0;
  const double most = std::max(kSteps, kSeconds / std::max(mean_, 1e-6));
  const double weight = 1 / std::clamp(static_cast<double>(steps_), 1.0, most);
  ++steps_;
  mean_ += weight * (seconds - mean_);
  return mean_;
}

/// Returns the time in which this rank kept others waiting rather than waited itself: what it
/// computed, and whatever else was no collective. 0 if a device does not tell of it.
static double work_seconds(const runtime::Usage& usage, double seconds) {
  const auto busy = [&](runtime::Queue queue) {
    return usage[static_cast<std::size_t>(queue)].busy_seconds;
  };
  if (busy(runtime::Queue::compute) == 0) return 0;
  return std::max(busy(runtime::Queue::compute) + busy(runtime::Queue::host),
                  seconds - busy(runtime::Queue::communication));
}

/// Replaces times at work by the least ones, so that others that hold up the step are in no bound.
/// A device of its own does not tell how long it computes.
static void take_least_times(runtime::Usage& usage,
                             const std::array<double, runtime::kQueues>& least,
                             const machine::Machine& machine) {
  for (const runtime::Queue queue : {runtime::Queue::compute, runtime::Queue::host}) {
    const auto q = static_cast<std::size_t>(queue);
    if (queue == runtime::Queue::host || machine.host_is_device()) usage[q].busy_seconds = least[q];
  }
}

void StepMeter::begin(const Engine& engine, const ModelConfig& model, const TrainOptions& options,
                      const machine::Machine& machine, double foreseen_seconds) {
  const runtime::Plan& plan = engine.programs().settings.plan;
  machine_ = machine;
  foreseen_seconds_ = foreseen_seconds;
  token_flops_ = flops_per_token(model, options.sequence_length);
  // Published fp32 peaks do not use TF32, so with it fp32 has no peak to compare with.
  if (!options.tf32 || options.dtype != DType::f32) peak_ = machine.device.flops(options.dtype);
  step_tokens_ = static_cast<double>(options.global_batch * options.sequence_length);
  run_steps_ = options.steps;
  world_ = plan.mesh.ranks();
  arena_bytes_ = engine.arena().bytes();
  const compile::StepPrograms& programs = engine.programs();
  pinned_arena_bytes_ = programs.arena_bytes(runtime::Tier::pinned);
  pageable_arena_bytes_ = programs.arena_bytes(runtime::Tier::pageable);
  disk_arena_bytes_ = programs.disk_bytes();
  offloads_ = choices_of(options).moves_state();
  for (const auto& [key, program] : engine.programs().programs)
    if (key.is_train())
      for (const runtime::Instruction& in : program.instructions)
        step_flops_ += in.demand.flops * zero::runs_per_step(plan, key.micro_step);
}

StepDone StepMeter::complete(const kernels::StepMetrics& metrics, double seconds) {
  StepDone report;
  report.metrics = metrics;
  report.step = metrics.step + 1;
  report.steps = run_steps_;
  report.seconds = seconds;
  report.foreseen_seconds = foreseen_seconds_;
  report.smoothed_seconds = smoothed_.add(seconds);
  report.tokens_per_second = step_tokens_ / seconds;
  report.smoothed_tokens_per_second = step_tokens_ / report.smoothed_seconds;
  report.flops_per_second = step_flops_ / seconds;
  report.mfu = model_flops_utilization(token_flops_, peak_, report.tokens_per_second / world_);
  runtime::Usage usage = usage_.take(metrics.step);
  report.work_seconds = work_seconds(usage, seconds);
  ++done_;
  const bool is_first = done_ - warming_steps(done_) == 1;
  if (is_first) least_.begin_sum();
  take_least_times(usage, least_.take(metrics.step), machine_);
  if (offloads_) report.bound = find_bound(usage, 1, seconds, machine_);
  count(seconds, usage, is_first);
  report.arena_bytes = arena_bytes_;
  report.pinned_arena_bytes = pinned_arena_bytes_;
  report.pageable_arena_bytes = pageable_arena_bytes_;
  report.host_arena_bytes = pinned_arena_bytes_ + pageable_arena_bytes_;
  report.disk_arena_bytes = disk_arena_bytes_;
  report.peak_rss_bytes = machine::peak_resident_bytes();
  return report;
}

void StepMeter::count(double seconds, const runtime::Usage& usage, bool is_first) {
  if (is_first) {
    sum_ = {};
    steps_ = seconds_ = 0;
  }
  ++steps_;
  seconds_ += seconds;
  runtime::add(sum_, usage);
}

std::optional<StepBound> StepMeter::mean_bound() const {
  if (steps_ == 0 || !offloads_) return {};
  runtime::Usage usage = sum_;  // earlier steps did not know the least times of later ones
  take_least_times(usage, least_.sum(), machine_);
  return find_bound(usage, steps_, seconds_ / steps_, machine_);
}

std::string StepMeter::describe_foreseen() const {
  if (steps_ == 0) return "";
  return format_number("foreseen %.3g s per step, ", foreseen_seconds_) +
         format_number("measured %.3g s", seconds_ / steps_) +
         fmt::format(" (mean of {:.0f} {}{})", steps_, steps_ == 1 ? "step" : "steps",
                     without_warming_text(done_));
}

}  // namespace strata::train
