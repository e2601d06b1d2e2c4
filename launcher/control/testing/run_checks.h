// What must hold in every simulated run, whatever happens to it. The checks know the truth: which
// ranks live, what failed, what is on the disk.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "launcher/control/run_control.h"
#include "launcher/control/testing/restart_rules.h"
#include "launcher/control/testing/scenario.h"
#include "launcher/control/testing/shared_disk.h"
#include "launcher/control/testing/start_id.h"

namespace strata::launcher::simulation {

/// A check has failed; `what()` says how.
class CheckFailed : public std::runtime_error {
 public:
  CheckFailed(std::string check, const std::string& what)
      : std::runtime_error(what), check_(std::move(check)) {}
  [[nodiscard]] const std::string& check() const { return check_; }

 private:
  std::string check_;
};

class RunChecks {
 public:
  /// Borrows all.
  RunChecks(const EventQueue& queue, const Scenario& scenario, const SharedDisk& disk);

  // The truth, as it happens.
  /// Something that may cost the run this host happened to it, until `end`.
  void note_trouble(int host, Time end);
  /// Something happened that takes up to so long to be noticed.
  void note_delay(Duration delay) { last_trouble_ = std::max(last_trouble_, queue_.now() + delay); }
  /// Returns since when nothing has been wrong with the host.
  [[nodiscard]] Time well_since(int host) const { return trouble_until_.at(index(host)); }
  void note_failed_rank(StartId id, int rank) { failed_ranks_.insert({id, rank}); }
  void note_hung_rank(StartId id, int rank, bool is_stopped, bool was_slowed) {
    (is_stopped ? stopped_ranks_ : hung_ranks_).insert({id, rank});
    if (was_slowed) slowed_ranks_.insert({id, rank});
  }
  /// All ranks are in a collective for ever.
  void note_network_hangs(StartId id) { network_hangs_.insert(id); }
  void note_user_signal(int number);
  /// The coordinator hears that a host got a signal; `others`: slots of hosts that could be used.
  void note_signal_of_host(int number, bool is_running, const std::vector<int>& others);
  /// The coordinator hears of the newest checkpoint that ranks of an agent knew, and of their step.
  void note_told_commit(std::int64_t committed, std::int64_t step) {
    rules_.learn(committed, step);
  }
  /// The coordinator hears from an agent which attempt that has started ranks of last; -1: none.
  void note_told_attempt(int newest) { knows_earlier_ |= newest >= 0; }
  /// The coordinator hears how many ranks the run may have.
  void note_told_worlds() { worlds_told_ = true; }
  void note_lock_taken(StartId id) { locked_ = id; }
  /// A coordinator begins: the run's first, or one that takes up the run. It knows nothing of what
  /// those before were told.
  void note_coordinator_begins(int number);
  /// No other one will come.
  void note_coordinator_lost() { coordinator_lost_ = true; }
  /// Returns the time of the last event that may delay the run.
  [[nodiscard]] Time last_trouble() const { return last_trouble_; }

  // What is checked when it happens.
  void on_start_of_ranks(StartId id) const;
  void on_commit(StartId id, std::int64_t step) const;
  void on_signal_of_ranks(int times);
  /// Call it for the actions of each event; hosts with `available` slots could have been used.
  void on_actions(const std::vector<ControlAction>& actions, const std::vector<int>& available);
  /// Call it after each event: attempts that have living ranks on hosts that are not paused.
  void on_living(const std::set<StartId>& attempts) const;
  /// Throws if the run, or a rank, should have ended by now.
  void on_time(bool any_rank_lives) const;

  [[nodiscard]] bool has_ended() const { return exit_code_.has_value(); }
  [[nodiscard]] bool is_over() const { return has_ended() || coordinator_lost_; }
  [[nodiscard]] std::optional<int> exit_code() const { return exit_code_; }

 private:
  void on_message(const SendToAgent& send);
  void on_signal_to_ranks(const ForwardSignal& signal);
  void on_report(const AttemptReport& report);
  void on_end(int exit_code, bool after_report, const std::vector<int>& available);
  void on_start(const StartAttempt& start);
  void on_new_attempt() const;
  [[nodiscard]] bool is_another_run() const;
  void judge_lock_wait(const AttemptReport& report);
  /// Returns the newest attempt that a coordinator began.
  [[nodiscard]] StartId newest() const { return starts_.empty() ? StartId() : starts_.back().id; }
  [[nodiscard]] std::ptrdiff_t regroupings_of_coordinator() const;
  [[nodiscard]] int most_ranks() const;
  [[nodiscard]] bool suffice(const std::vector<int>& slots) const;
  void explain_end(int exit_code, const std::vector<int>& available) const;
  void check_hang(const AttemptReport& report) const;
  [[nodiscard]] bool may_be_lost(int host) const;
  [[nodiscard]] bool is_stopped_after_save() const;
  [[nodiscard]] bool has_failed(const AttemptReport::OfHost& host, int ranks) const;
  [[nodiscard]] int number_of(const std::string& host) const;
  static std::size_t index(int host) { return static_cast<std::size_t>(host); }

  const EventQueue& queue_;
  const Scenario& scenario_;
  const SharedDisk& disk_;
  RestartRules rules_;
  std::optional<std::string> no_restart_;  ///< why the rules allow no further attempt
  std::vector<Time> trouble_until_;
  Time last_trouble_{};
  std::set<std::pair<StartId, int>> failed_ranks_;
  std::set<std::pair<StartId, int>> stopped_ranks_;
  std::set<std::pair<StartId, int>> hung_ranks_;  ///< in another way
  std::set<std::pair<StartId, int>>
      slowed_ranks_;  ///< of them, those that ran between stops before
  std::set<StartId> network_hangs_;
  struct Start {
    StartId id;
    Placement placement;
    Time began{};
  };
  std::vector<Start> starts_;
  int coordinator_ = -1;          ///< number of the newest
  std::ptrdiff_t of_before_ = 0;  ///< starts by coordinators before
  StartId locked_;                ///< whose ranks had the lock of the output folder last
  /// Ranks of the next attempt must wait for the lock of a host that was lost; nullopt: unknown.
  std::optional<bool> waits_for_lost_ = false;
  bool knows_earlier_ = false;  ///< an agent has told the coordinator of an attempt
  bool worlds_told_ = false;
  int signals_ = 0;
  std::set<StartId> grows_;    ///< attempts that were to save and stop, to start again as more
  std::set<StartId> misfits_;  ///< attempts of numbers of ranks that do not fit
  int user_signal_ = 0;        ///< that ends the run; 0: none
  bool is_warned_ = false;     ///< by SIGUSR1, which makes ranks stop
  bool may_leave_ = false;     ///< a host was told to end, and may leave alone
  bool may_stop_ = false;      ///< a host was told to end, and the run may end with it
  Time gathering_since_{};
  bool coordinator_lost_ = false;
  bool all_told_ = false;            ///< each host of the last report told its facts
  bool all_stopped_ = false;         ///< all ranks of the last report have saved and stopped
  std::set<std::string> dismissed_;  ///< host and agent
  std::optional<int> exit_code_;
};

}  // namespace strata::launcher::simulation
