// Whether an agent still hopes for its coordinator, on host 0: what it says while that cannot be
// reached, when it gives up, and with which code it ends then. A run that is over looks from there
// as one that has not begun.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"

namespace strata::launcher {

class Reach {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// A coordinator that does not answer is spoken of after this time, ...
  static constexpr std::chrono::seconds kQuiet{3};
  /// ... and again each time that so long has passed.
  static constexpr std::chrono::seconds kAgain{60};
  /// Unless told otherwise an agent waits so long for the first answer, since hosts do not start at
  /// one time, ...
  static constexpr std::chrono::seconds kJoin{300};
  /// ... and so long after a coordinator that was there has gone.
  static constexpr std::chrono::seconds kRejoin{60};

  /// `where`: address and port of the coordinator, for people; `join`: how long it waits for the
  /// first answer.
  Reach(TimePoint now, std::string where, std::chrono::seconds join)
      : where_(std::move(where)), join_(join), since_(now) {}

  /// The coordinator let the agent in. Returns what to say, if anything.
  std::optional<std::string> found();
  /// It cannot be reached; may be told often.
  void lost(TimePoint now, const std::string& reason) {
    if (!since_) {
      since_ = now;
      next_minute_ = 0;
    }
    reason_ = reason;
  }

  /// Another coordinator answers in its place, and does not let this host in. May be told often;
  /// returns what to say, if anything.
  std::optional<std::string> found_another(TimePoint now, const std::string& reason);

  [[nodiscard]] bool is_lost() const { return since_.has_value(); }
  /// It has been lost for longer than a connection takes that is made again.
  [[nodiscard]] bool is_quiet(TimePoint now) const { return since_ && now >= *since_ + kQuiet; }

  /// Returns words that are due now, if any: each time without a coordinator is spoken of after
  /// kQuiet and then every kAgain.
  [[nodiscard]] std::optional<std::string> complaint(TimePoint now);
  /// What to say when it gives up.
  [[nodiscard]] std::string farewell() const;
  /// With which code the agent ends then. A run that was there may go on when all start again; of
  /// one that never was there nothing is known, and to start again might never end.
  [[nodiscard]] ExitCode exit_code() const {
    return ever_found_ ? ExitCode::try_again : ExitCode::host;
  }
  [[nodiscard]] bool has_given_up(TimePoint now) const {
    return since_ && now >= *since_ + limit();
  }
  /// Returns when words or the end are due; nullopt: not before the coordinator is lost.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  /// How long it waits in all.
  [[nodiscard]] std::chrono::seconds limit() const { return ever_found_ ? kRejoin : join_; }

 private:
  /// Returns after how long a time without a coordinator the next words are due.
  [[nodiscard]] std::chrono::seconds next_words() const {
    return next_minute_ == 0 ? kQuiet : next_minute_ * kAgain;
  }

  const std::string where_;
  const std::chrono::seconds join_;
  std::optional<TimePoint> since_;  ///< without a coordinator
  bool ever_found_ = false;
  int next_minute_ = 0;  ///< of that time, when words are due; 0: none have been said
  std::string reason_;   ///< empty: nothing has been tried yet
  std::string another_;  ///< why another one has not let this host in, as it was said
};

}  // namespace strata::launcher
