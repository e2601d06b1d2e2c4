// Decides whether a run whose ranks have ended starts again, as a function of how its attempts
// ended so far (docs/faults.md, 24 and 37).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace strata::launcher {

/// How an attempt ended: a start of all ranks of a run, and what came of it.
struct AttemptEnd {
  int exit_code = 0;        ///< that mlaunch would end with
  bool was_asked = false;   ///< the user or a scheduler ended it, or the run is done
  bool could_start = true;  ///< false: a rank's program could not be started
  bool done = false;        ///< the failed rank had done and saved its work
  /// Ranks of a run that had got somewhere could not begin, as their host or the output folder was
  /// not ready (69 or 74 before a step): a host that is gone may hold its lock for a time, or a
  /// disk is full.
  bool is_kept_out = false;
  bool left_behind = false;     ///< what was killed does not end, and ranks may not start beside it
  bool out_of_memory = false;   ///< the kernel killed a rank for lack of memory
  std::int64_t step = -1;       ///< that the attempt failed in; -1: none, or unknown
  std::string signature = {};   ///< equal for failures with one cause, in whichever rank
  std::int64_t committed = -1;  ///< step of the newest checkpoint of the run; -1: none
};

class RestartPolicy {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::hours kWindow{1};
  /// Attempts in a row that fail alike at one step, or that commit nothing newer. Those that were
  /// kept out do not count.
  static constexpr int kAlike = 3;

  struct Limits {
    int most_restarts = 3;  ///< in any hour; 0: never
    /// False: a run that has committed nothing ends, since a start that fails would fail again.
    bool without_commit = false;
  };
  explicit RestartPolicy(Limits limits) : limits_(limits) {}

  struct Decision {
    bool restart = false;
    int exit_code = 0;     ///< if it does not restart
    std::string why = {};  ///< why it does not, for people; "": that needs no words
    bool gave_up = false;  ///< true: evidence is worth keeping (exit code 93)
  };
  /// Call it once for each attempt, in order; times must not decrease.
  Decision after(TimePoint now, const AttemptEnd& end);

  /// Restarts so far that count now.
  [[nodiscard]] int restarts_within(TimePoint now) const;
  [[nodiscard]] int most_restarts() const { return limits_.most_restarts; }

 private:
  [[nodiscard]] Decision judge(TimePoint now, const AttemptEnd& end) const;
  [[nodiscard]] int alike_in_a_row() const;
  [[nodiscard]] int in_a_row_without_commit() const;

  Limits limits_;
  std::vector<AttemptEnd> ends_;
  std::vector<TimePoint> restarts_;
};

}  // namespace strata::launcher
