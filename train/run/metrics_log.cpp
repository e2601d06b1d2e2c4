#include "train/run/metrics_log.h"

#include <cerrno>
#include <cmath>

#include "core/error.h"

namespace strata::train {
namespace {

/// JSON has no NaN or infinity.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace

MetricsLog::MetricsLog(const std::string& path, Begin begin) : path_(path) {
  if (path.empty()) return;
  file_.reset(std::fopen(path.c_str(), begin == Begin::append ? "a" : "w"));
  if (!file_) throw IoError(path, 0, "cannot create the metrics file", errno);
}

void MetricsLog::append(const std::string& line) {
  if (std::fputs(line.c_str(), file_.get()) < 0 || std::fflush(file_.get()) != 0)
    throw IoError(path_, 0, "cannot write metrics", errno);
}

void MetricsLog::write(const StepReport& r) {
  if (!file_) return;
  append("{\"step\": " + std::to_string(r.step) + ", \"loss\": " + number(r.metrics.loss) +
         ", \"learning_rate\": " + number(r.metrics.learning_rate) + ", \"grad_norm\": " +
         number(r.metrics.gradient_norm) + ", \"loss_scale\": " + number(r.metrics.loss_scale) +
         ", \"skipped_steps\": " + std::to_string(r.metrics.skipped) + ", \"overflow\": " +
         (r.metrics.overflow != 0 ? "true" : "false") + ", \"seconds\": " + number(r.seconds) +
         ", \"tokens_per_second\": " + number(r.tokens_per_second) +
         ", \"rank_flops_per_second\": " + number(r.flops_per_second) + ", \"mfu\": " +
         (r.mfu ? number(*r.mfu) : "null") + ", \"arena_bytes\": " + std::to_string(r.arena_bytes) +
         ", \"peak_rss_bytes\": " + std::to_string(r.peak_rss_bytes) +
         (r.checkpoint_age_seconds
              ? ", \"checkpoint_age_seconds\": " + number(*r.checkpoint_age_seconds)
              : "") +
         (r.bound ? ", " + to_json_members(*r.bound) : "") + "}\n");
}

void MetricsLog::write_evaluation(std::int64_t step, double loss) {
  if (!file_) return;
  append("{\"step\": " + std::to_string(step) + ", \"eval_loss\": " + number(loss) + "}\n");
}

void MetricsLog::write_checkpoint(std::int64_t step, std::int64_t bytes, double blocked_seconds,
                                  double seconds) {
  if (!file_) return;
  append("{\"step\": " + std::to_string(step) + ", \"checkpoint_bytes\": " + std::to_string(bytes) +
         ", \"checkpoint_seconds\": " + number(seconds) +
         ", \"checkpoint_blocked_seconds\": " + number(blocked_seconds) + "}\n");
}

void MetricsLog::write_transfers(std::int64_t steps, const std::vector<std::string>& by_rank) {
  if (!file_) return;
  std::string ranks;
  for (const std::string& rank : by_rank) ranks += (ranks.empty() ? "" : ", ") + rank;
  append("{\"steps\": " + std::to_string(steps) + ", \"ranks\": [" + ranks + "]}\n");
}

}  // namespace strata::train
