// Shows the steps: on a terminal one rewritten line, in a log a timed line every so often.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/run/run_event.h"
#include "train/session/console.h"

namespace strata::train {

struct ProgressOptions {
  std::int64_t every_steps = 0;        ///< print a line that stays after each so many; 0: never
  std::chrono::seconds log_every{30};  ///< time between lines of a log; 0: first and last only
};

class Progress {
 public:
  Progress(Console& console, const ProgressOptions& options)
      : console_(console), options_(options) {}
  /// A RunListener for steps and evaluations.
  void operator()(const RunEvent& event);
  void show(const StepDone& report);
  /// Leaves the last step on the screen; in a log prints its line if that was not due before.
  void finish();

 private:
  void show(const Evaluating& evaluating);
  void show(const Evaluated& evaluated);
  using Clock = std::chrono::steady_clock;
  /// True if a log is due for its next line.
  [[nodiscard]] bool is_due() const;
  void print(const std::vector<std::string>& fields);
  Console& console_;
  ProgressOptions options_;
  std::vector<std::string> unprinted_;  ///< the last step's, if its line was not due
  std::optional<Clock::time_point> printed_at_;
};

/// The fields that describe a step, the most important first.
std::vector<std::string> progress_fields(const StepDone& report);

/// "34 s", "5 min 10 s", "40 min", "3 h 25 min", "2 d 4 h".
std::string format_duration(double seconds);

}  // namespace strata::train
