// What a person watches: on a terminal one rewritten line, in a log a line with its time every so
// often.
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
  std::int64_t every_steps = 0;        ///< lines that stay: after each so many; 0: none for that
  std::chrono::seconds log_every{30};  ///< where no line is rewritten; 0: first and last only
};

class Progress {
 public:
  Progress(Console& console, const ProgressOptions& options)
      : console_(console), options_(options) {}
  /// A RunListener: of steps and evaluations.
  void operator()(const RunEvent& event);
  void show(const StepDone& report);
  /// The last step shown stays on the screen; in a log its line is written, if it was not.
  void finish();

 private:
  void show(const Evaluating& evaluating);
  void show(const Evaluated& evaluated);
  using Clock = std::chrono::steady_clock;
  /// In a log: since the last line of its kind.
  [[nodiscard]] bool is_due() const;
  void print(const std::vector<std::string>& fields);
  Console& console_;
  ProgressOptions options_;
  std::vector<std::string> unprinted_;  ///< of the last step, where its line was not due
  std::optional<Clock::time_point> printed_at_;
};

/// Says of a step what matters, the most important first.
std::vector<std::string> progress_fields(const StepDone& report);

/// "34 s", "5 min 10 s", "40 min", "3 h 25 min", "2 d 4 h".
std::string format_duration(double seconds);

}  // namespace strata::train
