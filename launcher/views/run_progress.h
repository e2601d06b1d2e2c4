// How a run has come along, from looks at it about once in a second: curves, events, and how much
// of its time went into steps that count. Bounded, however long the run lives.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/views/run_status.h"

namespace strata::launcher {

class RunProgress {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::seconds kBetweenLooks{1};
  /// Beyond it every second point goes, and points come half as often.
  static constexpr std::size_t kMostPoints = 1024;
  static constexpr std::size_t kMostEvents = 64;

  /// Looks at the run. Times must not decrease.
  void look(TimePoint now, std::chrono::system_clock::time_point wall, const RunStatus& status);
  [[nodiscard]] TimePoint next_look() const {
    return looked_ ? *looked_ + kBetweenLooks : TimePoint();
  }

  /// Adds what it knows.
  void complete(TimePoint now, RunStatus& status) const;

  /// Returns one line of JSON: curves and events (docs/formats/status.md).
  [[nodiscard]] std::string json() const;

 private:
  struct Point {
    std::int64_t step;
    double loss;
    double tokens_per_second;
  };
  struct Happened {
    std::chrono::system_clock::time_point when;
    bool is_start;  ///< of the ranks, else of a checkpoint
    std::string text;
  };

  void see_attempt(std::chrono::system_clock::time_point wall, const RunStatus& status);
  void see_checkpoint(TimePoint now, std::chrono::system_clock::time_point wall,
                      const RunStatus& status);
  void see_save_failures(std::chrono::system_clock::time_point wall, const RunStatus& status);
  void see_step(TimePoint now, const RankState& rank);
  void see_beats(TimePoint now, const RunStatus& status);
  void tell(std::chrono::system_clock::time_point wall, bool is_start, std::string text);

  struct Beats {
    std::uint64_t count = 0;
    TimePoint since;  ///< when that was seen first
  };

  std::optional<TimePoint> looked_;
  int attempt_ = -1;
  std::int64_t step_ = -1;        ///< the highest that a rank was seen in
  std::int64_t done_until_ = -1;  ///< steps up to this one were begun in earlier attempts
  std::int64_t lost_steps_ = 0;
  double useful_seconds_ = 0;
  bool has_steps_ = false;  ///< ranks tell of them
  bool saves_fail_ = false;
  std::int64_t committed_ = -1;
  std::optional<TimePoint> committed_at_;
  std::map<int, Beats> beats_;  ///< of the attempt's ranks that tell of their progress
  std::vector<Point> points_;
  std::optional<TimePoint> added_;  ///< when the last point was
  std::chrono::seconds gap_{1};     ///< between points
  std::vector<Happened> events_;
};

}  // namespace strata::launcher
