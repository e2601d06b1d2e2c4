#include "train/session/metrics_log.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <string_view>
#include <utility>

namespace strata::train {
namespace {

constexpr std::string_view kStepKey = "{\"step\": ";

/// The step of a line about a step, an evaluation or a checkpoint; the least number for others.
std::int64_t step_of(std::string_view line) {
  std::int64_t step = std::numeric_limits<std::int64_t>::min();
  if (!line.starts_with(kStepKey)) return step;
  std::from_chars(line.data() + kStepKey.size(), line.data() + line.size(), step);
  return step;
}

/// Text of a number; null for NaN and infinity, which JSON does not have.
std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

}  // namespace

std::string put_earlier_metrics_aside(const std::string& path) {
  return put_earlier_file_aside(path, "{", "metrics", "--metrics");
}

MetricsLog::MetricsLog(const std::string& path, std::int64_t first_step,
                       AppendedFile::OnFailure on_failure)
    : file_(path, "metrics", std::move(on_failure)) {
  if (first_step > 0)
    file_.cut_lines_after(first_step, step_of);
  else
    file_.clear();
}

bool MetricsLog::write(const StepDone& r) {
  return file_.append(
      "{\"step\": " + std::to_string(r.step) + ", \"loss\": " + number(r.metrics.loss) +
      ", \"learning_rate\": " + number(r.metrics.learning_rate) + ", \"grad_norm\": " +
      number(r.metrics.gradient_norm) + ", \"loss_scale\": " + number(r.metrics.loss_scale) +
      ", \"skipped_steps\": " + std::to_string(r.metrics.skipped) + ", \"overflow\": " +
      (r.metrics.overflow != 0 ? "true" : "false") + ", \"seconds\": " + number(r.seconds) +
      ", \"foreseen_seconds\": " + number(r.foreseen_seconds) +
      ", \"tokens_per_second\": " + number(r.tokens_per_second) +
      ", \"smoothed_tokens_per_second\": " + number(r.smoothed_tokens_per_second) +
      ", \"rank_flops_per_second\": " + number(r.flops_per_second) + ", \"mfu\": " +
      (r.mfu ? number(*r.mfu) : "null") + ", \"arena_bytes\": " + std::to_string(r.arena_bytes) +
      ", \"peak_rss_bytes\": " + std::to_string(r.peak_rss_bytes) +
      (r.checkpoint_age_seconds
           ? ", \"checkpoint_age_seconds\": " + number(*r.checkpoint_age_seconds)
           : "") +
      (r.bound ? ", " + to_json_members(*r.bound) : "") + "}\n");
}

bool MetricsLog::write(const Evaluated& e) {
  return file_.append("{\"step\": " + std::to_string(e.step) +
                      ", \"eval_loss\": " + number(e.loss) + "}\n");
}

bool MetricsLog::write(const Saved& s) {
  return file_.append("{\"step\": " + std::to_string(s.step) + ", \"checkpoint_bytes\": " +
                      std::to_string(s.bytes) + ", \"checkpoint_seconds\": " + number(s.seconds) +
                      ", \"checkpoint_blocked_seconds\": " + number(s.blocked_seconds) + "}\n");
}

bool MetricsLog::write(const Transfers& t) {
  std::string ranks;
  for (const std::string& rank : t.by_rank) ranks += (ranks.empty() ? "" : ", ") + rank;
  return file_.append("{\"steps\": " + std::to_string(t.steps) + ", \"ranks\": [" + ranks + "]}\n");
}

}  // namespace strata::train
