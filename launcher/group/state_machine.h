// Decides what mlaunch does and when, as a pure function of events and their times. It does not
// start, read or kill anything, so every order of events can be tested without processes.
//
//   running --SIGTERM--> stopping: ranks get SIGTERM, and the grace to save and end with 75
//           --Ctrl-C---> ending: ranks get SIGINT, then SIGTERM, then SIGKILL
//           --failure, here or of a peer on another host--> ending: peers get kPeerGrace to end by
//           themselves, then SIGTERM, SIGKILL
//   stopping --grace is over--> ending: SIGKILL, and 75 as of ranks that give up by themselves then
//            --a second SIGTERM, Ctrl-C, failure--> ending as above
//   ending --one more signal--> SIGKILL
//   any --all ranks ended--> draining: their descendants end, their output is read to its end
//   draining --nothing left--> finished
//   ending, draining --what got SIGKILL has not ended after kKillLimit--> finished, and it is left
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "launcher/control/ending.h"

namespace strata::launcher {

using TimePoint = std::chrono::steady_clock::time_point;

/// Returns the sooner of two times; nullopt means never.
inline std::optional<TimePoint> sooner(const std::optional<TimePoint>& a,
                                       const std::optional<TimePoint>& b) {
  return !a || (b && *b < *a) ? b : a;
}

// Events.
struct RankEnded {
  int rank;
  Ending ending;
};
struct RankOutputEnded {  ///< both streams of the rank are closed and read
  int rank;
};
struct SpawnFailed {
  int rank;
  std::string reason;
};
struct SignalReceived {
  int number;
};
struct PeerFailed {  ///< a rank on another host, or one that hangs and is to end
  std::string reason;
};
struct KillAll {};        ///< mlaunch itself ends all at once, as where a lease has ended
struct NoProcessLeft {};  ///< no rank and no descendant of one is alive
struct Tick {};           ///< next_deadline() has passed
using Event = std::variant<RankEnded, RankOutputEnded, SpawnFailed, SignalReceived, PeerFailed,
                           KillAll, NoProcessLeft, Tick>;

// Actions, to be done in the given order.
struct SignalRank {
  int rank;
  int number;
  bool operator==(const SignalRank&) const = default;
};
struct FailWaitingPeers {  ///< gets at the rendezvous throw PeerError with this reason
  std::string reason;
  bool operator==(const FailWaitingPeers&) const = default;
};
struct EndLeftovers {  ///< kill every descendant, now and later ones as they appear
  bool operator==(const EndLeftovers&) const = default;
};
struct TellLeftovers {  ///< say which descendants do not end
  bool operator==(const TellLeftovers&) const = default;
};
struct Suspend {  ///< stop mlaunch itself (Ctrl-Z)
  bool operator==(const Suspend&) const = default;
};
struct Say {  ///< one line on standard error
  std::string text;
  bool operator==(const Say&) const = default;
};
struct Finish {
  int exit_code;
  bool operator==(const Finish&) const = default;
};
using Action =
    std::variant<SignalRank, FailWaitingPeers, EndLeftovers, TellLeftovers, Suspend, Say, Finish>;

/// The failure that the last lines on the screen are about.
struct Failure {
  int rank;
  Ending ending;
  std::string spawn_error;  ///< not empty: the rank never started
};

class StateMachine {
 public:
  static constexpr std::chrono::milliseconds kPeerGrace{1000};
  static constexpr std::chrono::milliseconds kEndGrace{4000};
  static constexpr std::chrono::milliseconds kKillLimit{3000};
  static constexpr std::chrono::milliseconds kOrphanGrace{500};
  static constexpr std::chrono::milliseconds kDrainLimit{2000};

  /// All `ranks` count as started. `grace` is the time that they get to stop by themselves after
  /// SIGTERM. Ranks that are to end at once get at most kEndGrace of it.
  StateMachine(int ranks, std::chrono::milliseconds grace);

  /// Times of events must not decrease. Do not call it after Finish.
  std::vector<Action> handle(TimePoint now, const Event& event);

  /// Time at which handle(Tick) is due; nullopt: not before another event.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  [[nodiscard]] const std::optional<Failure>& failure() const { return failure_; }
  /// True once ranks are ended because one of them, or a peer on another host, failed.
  [[nodiscard]] bool is_failing() const { return failing_; }
  /// The signal with which the user ended the run; 0: none.
  [[nodiscard]] int user_signal() const { return user_signal_; }
  /// True if the user asked to kill the ranks at once (Ctrl-C twice, Ctrl-\, `mlaunch stop --now`
  /// twice) before their time was over.
  [[nodiscard]] bool was_kill_asked() const { return kill_asked_; }
  /// True if all ranks ended with code 75 (try again), as ranks do that stop on request and have
  /// saved.
  [[nodiscard]] bool all_stopped() const;
  /// True if ranks that were killed do not end, or what they left behind does not.
  [[nodiscard]] bool gave_up() const { return gave_up_; }
  /// Ending of each rank; nullopt: it has not ended.
  [[nodiscard]] const std::vector<std::optional<Ending>>& endings() const { return endings_; }

 private:
  enum class State { running, stopping, ending, draining, finished };
  struct Escalation {
    TimePoint time;
    int signal;
  };

  void on(const RankEnded& event);
  void on(const RankOutputEnded& event);
  void on(const SpawnFailed& event);
  void on(const SignalReceived& event);
  void on(const PeerFailed& event);
  void on(const KillAll& event);
  void on(const NoProcessLeft& event);
  void on(const Tick& event);

  void note_failure(Failure failure, const std::string& reason);
  void end_peers(const std::string& reason);
  void stop_ranks(int user_signal);
  void wait_for_stop();
  void end_ranks(int user_signal);
  void hasten(int user_signal);
  void plan_escalation(std::chrono::milliseconds signal_after, int signal,
                       std::chrono::milliseconds kill_after);
  void kill_now();
  void kill_ranks();
  void end_leftovers();
  void give_up();
  void signal_living(int number);
  void settle();
  void start_draining();
  [[nodiscard]] bool drained() const;
  void finish();

  const std::chrono::milliseconds grace_;
  const std::chrono::milliseconds end_grace_;
  State state_ = State::running;
  std::vector<std::optional<Ending>> endings_;
  std::vector<bool> output_open_;
  std::optional<Failure> failure_;
  int user_signal_ = 0;
  bool asked_to_stop_ = false;  // true: a rank that ends with 75 does what it was told
  bool asked_to_end_ = false;   // true: mlaunch itself causes later endings
  bool kill_asked_ = false;
  bool is_grace_over_ = false;  // true: ranks that had not stopped by then were killed
  bool no_process_left_ = false;
  bool failing_ = false;
  bool gave_up_ = false;
  std::vector<Escalation> escalations_;  // soonest last
  std::optional<TimePoint> orphan_deadline_;
  std::optional<TimePoint> leftovers_deadline_;  // when those that were killed are given up
  std::optional<TimePoint> drain_deadline_;
  TimePoint now_;
  std::vector<Action> actions_;
};

}  // namespace strata::launcher
