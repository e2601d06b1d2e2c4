#include "train/run/nonfinite_watch.h"

#include <fmt/core.h>
#include <cmath>
#include <utility>

namespace strata::train {
namespace {

std::string step_text(const StepDone& report) { return fmt::format("step {}: ", report.step); }

std::string steps_text(std::int64_t count) {
  return fmt::format("{}{}", count, count == 1 ? " step" : " steps");
}

}  // namespace

std::int64_t nonfinite_limit(const TrainOptions& options) {
  switch (options.on_nonfinite) {
    case NonFinite::stop:
      return 1;
    case NonFinite::skip:
      return options.nonfinite_steps;
    case NonFinite::automatic:
      break;
  }
  const bool skips =
      options.dtype == DType::f16 || (options.dtype == DType::bf16 && options.bf16_check_overflow);
  return skips ? options.nonfinite_steps : 1;
}

NonFiniteWatch::NonFiniteWatch(const TrainOptions& options)
    : limit_(nonfinite_limit(options)),
      is_scaled_(options.dtype == DType::f16 && options.loss_scale.fixed_scale == 0),
      keeps_state_(options.offload.updates != UpdateTime::gradient) {}

std::string NonFiniteWatch::describe(const StepDone& report) const {
  const kernels::StepMetrics& metrics = report.metrics;
  std::string text = step_text(report);
  if (!std::isfinite(metrics.loss))
    text += "the loss is not finite (or over 8,192)";
  else
    text += "the loss is finite, but a gradient is not";
  if (is_scaled_) text += fmt::format(", at loss scale {}", std::llround(metrics.loss_scale));
  return text;
}

std::string NonFiniteWatch::take(const StepDone& report) {
  const kernels::StepMetrics& metrics = report.metrics;
  if (std::isfinite(metrics.loss) && std::isfinite(metrics.gradient_norm)) {
    counted_ = 0;
    const std::int64_t skipped = std::exchange(skipped_, 0);
    return skipped == 0 || !end_.empty() ? ""
                                         : step_text(report) + "finite again, after " +
                                               steps_text(skipped) + " without an update";
  }
  ++skipped_;
  // Overflowing gradients are how the loss scale is found, so they do not count until it is lowest.
  if (!is_scaled_ || !std::isfinite(metrics.loss)) ++counted_;
  if (!end_.empty()) return "";
  const std::string found = describe(report);
  if (metrics.at_floor != 0)
    end_ = found + ", the smallest (fp16.min_loss_scale); train in bf16 or lower the learning rate";
  else if (!keeps_state_)
    end_ = found +
           ", and updates that run after their own gradient have already changed parameters and "
           "optimizer state; lower the learning rate, or clip gradients and set --update-time "
           "next_step";
  else if (counted_ >= limit_)
    end_ = found +
           (limit_ == 1 ? "" : ", nor was it in the " + steps_text(counted_ - 1) + " before") +
           "; lower the learning rate, or look at the samples of that step" +
           (limit_ == 1 ? " (--on-nonfinite skip goes on without their updates)" : "");
  if (!end_.empty()) return found + ": the run ends";
  return skipped_ == 1 ? found + ": parameters and optimizer state stay as they were" : "";
}

}  // namespace strata::train
