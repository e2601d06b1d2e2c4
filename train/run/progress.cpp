#include "train/run/progress.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "train/engine/memory_report.h"

namespace strata::train {
namespace {

std::string duration(double seconds) {
  const auto s = static_cast<long long>(seconds + 0.5);
  char text[48];
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  else
    std::snprintf(text, sizeof text, "%lld:%02lld", s / 60, s % 60);
  return text;
}

}  // namespace

Progress::Progress(bool visible, bool terminal, std::int64_t steps, std::int64_t every_steps)
    : visible_(visible), terminal_(terminal), steps_(steps), every_steps_(every_steps) {
  if (every_steps_ <= 0) every_steps_ = terminal ? 1 : std::max<std::int64_t>(1, steps / 10);
}

std::string Progress::line(const StepReport& r) const {
  char text[384], utilization[96] = "";
  if (r.mfu) std::snprintf(utilization, sizeof utilization, "  MFU %.1f %%", 100 * *r.mfu);
  if (r.bound)
    std::snprintf(utilization + std::strlen(utilization),
                  sizeof utilization - std::strlen(utilization), "  %.0f %% of bound (%s)",
                  100 * r.bound->reached, r.bound->limit);
  const double left = seconds_ * static_cast<double>(steps_ - r.step);
  std::snprintf(text, sizeof text,
                "step %lld/%lld  loss %.4f  lr %.3g  grad norm %.3f%s  %.0f tokens/s  %.1f "
                "GFLOP/s per rank%s  arena %s  peak %s  left %s",
                static_cast<long long>(r.step), static_cast<long long>(steps_), r.metrics.loss,
                r.metrics.learning_rate, r.metrics.gradient_norm,
                r.metrics.overflow != 0 ? "  SKIPPED (not finite)" : "", r.tokens_per_second,
                r.flops_per_second / 1e9, utilization,
                format_bytes(static_cast<double>(r.arena_bytes)).c_str(),
                format_bytes(static_cast<double>(r.peak_rss_bytes)).c_str(),
                duration(left).c_str());
  return text;
}

void Progress::show(const StepReport& report) {
  seconds_ = seconds_ == 0 ? report.seconds : 0.9 * seconds_ + 0.1 * report.seconds;
  if (!visible_) return;
  const bool due = report.step == 1 || report.step == steps_ || report.step % every_steps_ == 0;
  if (!due) return;
  if (terminal_ && every_steps_ == 1) {
    std::printf("\r\033[K%s", line(report).c_str());
    line_open_ = true;
  } else {
    std::printf("%s\n", line(report).c_str());
  }
  std::fflush(stdout);
}

void Progress::show_evaluation(std::int64_t step, double loss) {
  if (!visible_) return;
  finish();
  std::printf("step %lld/%lld  held-out loss %.4f\n", static_cast<long long>(step),
              static_cast<long long>(steps_), loss);
  std::fflush(stdout);
}

void Progress::finish() {
  if (line_open_) std::printf("\n");
  line_open_ = false;
}

}  // namespace strata::train
