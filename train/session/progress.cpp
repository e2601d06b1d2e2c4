#include "train/session/progress.h"

#include <fmt/core.h>
#include <cmath>
#include <utility>

#include "core/format_bytes.h"
#include "train/run/format_number.h"

namespace strata::train {
namespace {

std::string step_of(std::int64_t step, std::int64_t steps) {
  return fmt::format("step {}/{}", step, steps);
}

}  // namespace

std::string format_duration(double seconds) {
  if (!(seconds < 1e9)) return "?";
  const long long s = std::llround(seconds);
  const auto two = [](long long large, const char* large_unit, long long small,
                      const char* small_unit) {
    return fmt::format("{}{}{}{}", large, large_unit, small, small_unit);
  };
  if (s < 60) return fmt::format("{} s", s);
  if (s < 600) return two(s / 60, " min ", s % 60, " s");
  if (s < 3600) return fmt::format("{} min", s / 60);
  if (s < 86400) return two(s / 3600, " h ", s / 60 % 60, " min");
  return two(s / 86400, " d ", s / 3600 % 24, " h");
}

std::vector<std::string> progress_fields(const StepDone& r) {
  const double of_smoothed = r.seconds / r.smoothed_seconds;
  std::vector<std::string> fields{step_of(r.step, r.steps),
                                  format_number("loss %.4f", r.metrics.loss) +
                                      (r.metrics.overflow != 0 ? "  SKIPPED (not finite)" : ""),
                                  format_number("%.0f tokens/s", r.smoothed_tokens_per_second),
                                  "left " + format_duration(r.seconds_left()),
                                  format_number("lr %.3g", r.metrics.learning_rate),
                                  format_number("grad norm %.3f", r.metrics.gradient_norm)};
  if (r.mfu) fields.push_back(format_number("MFU %.1f %%", 100 * *r.mfu * of_smoothed));
  if (r.bound)
    fields.push_back(format_number("%.0f %% of bound (", 100 * r.bound->reached) + r.bound->limit +
                     ")");
  fields.push_back("arena " + format_bytes(r.arena_bytes));
  fields.push_back("peak " + format_bytes(r.peak_rss_bytes));
  fields.push_back(format_number("%.1f GFLOP/s per rank", r.flops_per_second / 1e9 * of_smoothed));
  return fields;
}

void Progress::operator()(const RunEvent& event) {
  // A part of all steps is a number once the data are known.
  if (const auto* equipping = std::get_if<Equipping>(&event); equipping != nullptr)
    if (equipping->steps_per_print > 0) options_.every_steps = equipping->steps_per_print;
  if (const auto* done = std::get_if<StepDone>(&event)) show(*done);
  if (const auto* evaluating = std::get_if<Evaluating>(&event)) show(*evaluating);
  if (const auto* evaluated = std::get_if<Evaluated>(&event)) show(*evaluated);
  if (std::holds_alternative<Stopped>(event)) finish();
}

void Progress::print(const std::vector<std::string>& fields) {
  const std::string line = fit_fields(fields, 0);
  console_.print(console_.rewrites() ? line
                                     : time_stamp(std::chrono::system_clock::now()) + "  " + line);
}

void Progress::show(const StepDone& report) {
  std::vector<std::string> fields = progress_fields(report);
  const bool stays = options_.every_steps > 0 && report.step % options_.every_steps == 0;
  if (console_.rewrites()) {
    if (stays) print(fields);
    return console_.show_progress(std::move(fields));
  }
  unprinted_ = std::move(fields);
  if (!stays && printed_at_ && !is_due() && report.step != report.steps) return;
  print(std::exchange(unprinted_, {}));
  printed_at_ = Clock::now();
}

bool Progress::is_due() const {
  return printed_at_ && options_.log_every.count() > 0 &&
         Clock::now() - *printed_at_ >= options_.log_every;
}

void Progress::show(const Evaluating& e) {
  std::vector<std::string> fields{step_of(e.step, e.steps),
                                  fmt::format("evaluating, batch {}/{}", e.batch + 1, e.batches)};
  if (console_.rewrites()) return console_.show_progress(std::move(fields));
  if (!is_due()) return;
  print(fields);
  printed_at_ = Clock::now();
}

void Progress::show(const Evaluated& e) {
  console_.drop_progress();
  print({step_of(e.step, e.steps), format_number("held-out loss %.4f", e.loss)});
}

void Progress::finish() {
  if (!unprinted_.empty()) print(unprinted_);
  console_.end_progress();
}

}  // namespace strata::train
