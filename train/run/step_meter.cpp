#include "train/run/step_meter.h"

#include "train/run/host_memory.h"

namespace strata::train {

void StepMeter::begin(const Engine& engine, const ModelConfig& model, const TrainOptions& options,
                      const std::optional<DevicePeak>& peak, const runtime::MachineRates& rates) {
  const runtime::Plan& plan = engine.programs().settings.plan;
  rates_ = rates;
  token_flops_ = flops_per_token(model, options.sequence_length);
  peak_ = peak;
  dtype_ = options.dtype;
  step_tokens_ = static_cast<double>(options.global_batch * options.sequence_length);
  world_ = plan.world;
  arena_bytes_ = engine.arena().bytes();
  for (const auto& [position, program] : engine.programs().train)
    for (const runtime::Instruction& in : program.instructions)
      step_flops_ += in.cost.flops * zero::runs_per_step(plan, position);
}

StepReport StepMeter::complete(const kernels::StepMetrics& metrics, double seconds) {
  StepReport report;
  report.metrics = metrics;
  report.step = metrics.step + 1;
  report.seconds = seconds;
  report.tokens_per_second = step_tokens_ / seconds;
  report.flops_per_second = step_flops_ / seconds;
  report.mfu =
      model_flops_utilization(token_flops_, dtype_, peak_, report.tokens_per_second / world_);
  const runtime::Usage usage = usage_.take(metrics.step);
  if (const StepBound bound = find_bound(usage, 1, seconds, rates_); bound.moves())
    report.bound = bound;
  if (report.step > 1) {
    ++steps_;
    seconds_ += seconds;
    runtime::add(sum_, usage);
  }
  report.arena_bytes = arena_bytes_;
  report.peak_rss_bytes = peak_resident_bytes();
  return report;
}

std::optional<StepBound> StepMeter::mean_bound() const {
  if (steps_ == 0) return {};
  return find_bound(sum_, steps_, seconds_ / steps_, rates_);
}

}  // namespace strata::train
