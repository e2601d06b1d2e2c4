// Whether an agent still hopes for its coordinator, on host 0: what it says while that cannot be
// reached, and when it gives up.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace strata::launcher {

class Reach {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// A coordinator that does not answer is spoken of after this time.
  static constexpr std::chrono::seconds kQuiet{3};
  /// An agent waits so long for the first answer, since hosts do not start at one time, ...
  static constexpr std::chrono::seconds kJoin{300};
  /// ... and so long after a coordinator that was there has gone.
  static constexpr std::chrono::seconds kRejoin{60};

  /// `where`: address and port of the coordinator, for people.
  Reach(TimePoint now, std::string where) : where_(std::move(where)), since_(now) {}

  /// The coordinator let the agent in. Returns what to say, if anything.
  std::optional<std::string> found();
  /// It cannot be reached; may be told often.
  void lost(TimePoint now, const std::string& reason) {
    if (!since_) {
      since_ = now;
      said_ = false;
    }
    reason_ = reason;
  }

  /// Another coordinator answers in its place, and does not let this host in. May be told often;
  /// returns what to say, if anything.
  std::optional<std::string> found_another(TimePoint now, const std::string& reason);

  [[nodiscard]] bool is_lost() const { return since_.has_value(); }
  /// It has been lost for longer than a connection takes that is made again.
  [[nodiscard]] bool is_quiet(TimePoint now) const { return since_ && now >= *since_ + kQuiet; }

  /// What to say now, once for each time without a coordinator.
  [[nodiscard]] std::optional<std::string> complaint(TimePoint now);
  /// What to say when it gives up.
  [[nodiscard]] std::string farewell() const;
  [[nodiscard]] bool has_given_up(TimePoint now) const {
    return since_ && now >= *since_ + limit();
  }
  /// Returns when one of the two is due; nullopt: not before the coordinator is lost.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  /// How long it waits in all.
  [[nodiscard]] std::chrono::seconds limit() const { return ever_found_ ? kRejoin : kJoin; }

 private:
  const std::string where_;
  std::optional<TimePoint> since_;  ///< without a coordinator
  bool ever_found_ = false;
  bool said_ = false;
  std::string reason_;   ///< empty: nothing has been tried yet
  std::string another_;  ///< why another one has not let this host in, as it was said
};

}  // namespace strata::launcher
