// One attempt on this host, from the start of its ranks until nothing of them is left: its state
// machine decides, its group of ranks is what it decides about.
#pragma once

#include <poll.h>

#include <optional>
#include <vector>

#include "core/clock.h"
#include "launcher/command/run.h"
#include "launcher/control/agent.h"
#include "launcher/control/attempt_facts.h"
#include "launcher/control/hang_watch.h"
#include "launcher/control/messages.h"
#include "launcher/group/rank_group.h"
#include "launcher/group/state_machine.h"
#include "launcher/output/screen.h"
#include "launcher/report/hang_report.h"

namespace strata::launcher {

/// Goes on while the host sleeps, so that leases that were to end meanwhile have ended.
inline TimePoint now() { return TimePoint(std::chrono::nanoseconds(boot_time_ns())); }

class Attempt {
 public:
  /// Starts the ranks. Borrows run and screen.
  Attempt(const Run& run, const StartGroup& group, Screen& screen);

  /// Adds what to poll for.
  void add_polls(std::vector<pollfd>& entries) { ranks_.add_polls(entries); }
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;
  /// Does what is due: serves the rendezvous, reads outputs, reaps processes.
  void work();

  /// Returns what ranks ask of the values that all hosts share, since the last call.
  std::vector<ValueRequest> take_requests() { return ranks_.take_requests(); }
  void answer(const ValueAnswer& answer) { ranks_.answer(answer); }

  /// Passes on a signal to mlaunch.
  void signal(int number) { tell(SignalReceived{number}); }
  /// Ends the ranks as after the failure of a peer.
  void end(const std::string& reason) { tell(PeerFailed{reason}); }
  /// Sets until when ranks may write.
  void set_lease(TimePoint until) { ranks_.set_lease(until); }
  /// Tells that a child of mlaunch, begun just now, is none of the ranks'.
  void leave_alone(pid_t child) { ranks_.leave_alone(child); }
  /// Kills all at once; what does not end then is given up, as after a second Ctrl-C.
  void kill();

  [[nodiscard]] std::vector<RankState> look() const { return ranks_.look(); }
  /// Says what holds the ranks of this host that are to blame, and some of those that wait for
  /// them; takes some seconds at most.
  [[nodiscard]] HangDescribed describe_hang(const Hang& hang) const;
  /// Kills ranks of this host that are stopped or frozen, since they hear no request to end.
  void kill_held(const Hang& hang);
  /// The first failure of a rank, once; nullopt: none, or told before.
  [[nodiscard]] std::optional<RankFailed> take_failure();
  /// True once no process is left, or what was killed does not end.
  [[nodiscard]] bool is_over() const { return exit_code_.has_value(); }
  /// What became of it, after is_over().
  [[nodiscard]] AttemptFacts facts() const;
  /// The signal with which the user ended the run; 0: none.
  [[nodiscard]] int user_signal() const { return machine_.user_signal(); }
  /// True if mlaunch shall stop itself now (Ctrl-Z); tells it once.
  [[nodiscard]] bool take_suspend() { return std::exchange(suspend_, false); }

 private:
  void tell(const Event& event);
  void tell_all(const std::vector<Event>& events);
  void act(const Action& action);
  void watch_leftovers();
  [[nodiscard]] std::optional<Failure> failure_to_report() const;
  [[nodiscard]] HangEvidence evidence_of(int rank) const;
  [[nodiscard]] std::string last_events() const;
  [[nodiscard]] std::string what_nccl_says(std::chrono::milliseconds limit) const;
  [[nodiscard]] EndedRank ended_rank(int rank) const;
  [[nodiscard]] std::string why_it_stays(int rank) const;
  [[nodiscard]] bool ended_as_it_meant(int rank) const;
  [[nodiscard]] int first_rank() const { return start_.placement.first_rank(start_.node); }
  void say(const std::string& text) { screen_.say("mlaunch: " + text); }

  const StartAttempt start_;
  Screen& screen_;
  const std::int64_t kills_before_;
  StateMachine machine_;
  RankGroup ranks_;
  bool failure_told_ = false;
  bool suspend_ = false;
  bool ending_leftovers_ = false;
  bool leftovers_gone_ = false;
  std::optional<int> exit_code_;
};

}  // namespace strata::launcher
