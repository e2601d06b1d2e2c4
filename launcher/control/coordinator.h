// The coordinator of a run, as a pure function of events and their times: when ranks start and on
// which hosts, when all of them end, and whether the run starts again. Two attempts of a run never
// have ranks at one time: the next begins when each host of the last has said that none is left, or
// its lease has ended for certain.
//
//   gathering --hosts suffice--> running --a rank or host fails--> ending
//   running --all ranks ended--> ending --none left anywhere--> gathering, or finished
//
// A run may do with fewer hosts than it has: then it goes on with the largest world that rank 0
// admits and living hosts hold. A host that comes waits as a spare until the next checkpoint, at
// which the ranks save, stop and start again as more. A host that is told to end leaves alone: the
// ranks save, stop, and start again on the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/shared_values.h"
#include "launcher/control/announce.h"
#include "launcher/control/hosts_view.h"
#include "launcher/control/messages.h"
#include "launcher/control/restart_policy.h"
#include "launcher/control/signal_filter.h"
#include "launcher/control/worlds.h"

namespace strata::launcher {

/// After the last heartbeat of a host came, its ranks have ended for certain: a lease, and a margin
/// for clocks whose rates differ by up to 10 % and for late timers.
inline constexpr std::chrono::milliseconds kLeaseMargin{1500};
/// A host of the attempt from which nothing came for so long is called silent: three heartbeats
/// are missing. It is lost only once its lease has ended for certain.
inline constexpr std::chrono::milliseconds kSilence{3000};
/// Time that ranks of an attempt wait for the lock of a process that was killed; and of one whose
/// host is gone, for which a file server keeps locks (NFS: 90 s).
inline constexpr std::chrono::seconds kKilledRanksLock{5};
inline constexpr std::chrono::seconds kLostHostsLock{120};
/// A connection that breaks may be made again within this time, and nothing is lost.
inline constexpr std::chrono::milliseconds kReconnect{800};

// Events.
struct AgentSaid {
  std::string host;
  std::string agent;  ///< as its Hello named it
  AgentMessage message;
};
struct ConnectionBroke {  ///< the last one that the agent said Hello on
  std::string host;
  std::string agent;
};
struct RunSignal {  ///< to mlaunch, from the user or a scheduler
  int number = 0;
};
struct HostCannotCome {  ///< what was to start its agent has ended
  std::string host;
  std::string reason;
};
struct HostRefused {      ///< an agent that may not take part, and was told why
  std::string host;       ///< as it calls itself
  std::string host_name;  ///< for people
  std::string address;    ///< from which it came
  std::string why;        ///< seen from here: "it was told --nnodes 3, this host 2"
  /// Its ranks have run, and it waits for the coordinator that they had; this one has begun nothing
  /// and might have gone on with that run, if it had been told the same.
  bool is_of_earlier_run = false;
  int exit_code = 78;  ///< with which it ends; 75: it need not be refused the next time
};
/// Addresses of strangers, and hosts that were refused, which are remembered and said at most.
inline constexpr std::size_t kMostRefused = 16;
struct StrangerRefused {  ///< somebody who does not have the run's secret came as a host
  std::string address;    ///< from which it came
};
struct RanksHang {  ///< as HangWatch says, over all hosts
  Hang hang;
};
struct CoordinatorTick {};
using CoordinatorEvent = std::variant<AgentSaid, ConnectionBroke, RunSignal, HostCannotCome,
                                      HostRefused, StrangerRefused, RanksHang, CoordinatorTick>;

/// Why an attempt did not end well, and what each host told of it.
struct AttemptReport {
  struct OfHost {
    std::string host;  ///< for people
    int first_rank = 0;
    std::optional<AttemptFacts> facts;  ///< nullopt: the host was lost, or is gone
  };
  int attempt = 0;
  int world = 0;        ///< ranks of all hosts
  int failed_host = 0;  ///< index below, of the host whose rank failed first, or that was lost
  std::string lost_because = {};  ///< not empty: a host was lost, and no rank is to blame
  std::optional<Hang> hang = {};  ///< because of which the attempt was ended
  struct OfRanks {
    std::string host;     ///< for people
    std::string text;     ///< as Evidence has it
    std::string details;  ///< likewise
  };
  std::vector<OfRanks> evidence = {};  ///< of ranks that hung, or waited for those that did
  std::string advice = {};             ///< how to mend the hang
  std::vector<OfHost> hosts = {};
  std::int64_t committed = -1;    ///< step of the run's newest checkpoint; -1: none
  std::string checkpoint = {};    ///< its folder
  bool is_started_again = false;  ///< the ranks start again by themselves
};

// Actions, to be done in the given order.
struct SendToAgent {
  std::string host;
  std::string agent;  ///< of the host, which may have another one whose turn has not come
  CoordinatorMessage message;
};
struct TellReport {
  AttemptReport report;
};
struct KeepEvidence {  ///< of a run that gave up
  std::string why;
};
struct EndRun {
  int exit_code = 0;
};
using CoordinatorAction = std::variant<SendToAgent, TellReport, Announce, KeepEvidence, EndRun>;

class Coordinator {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Settings {
    std::vector<std::string> hosts;  ///< in the order of their ranks; others are not let in
    std::string own_host = {};  ///< that the coordinator's process is the agent of; empty: none
    int least_hosts = 1;        ///< with which the run may go on
    std::optional<std::chrono::milliseconds> lease = {};  ///< nullopt: all is in one process
    Worlds::Range worlds = {};               ///< numbers of ranks that the run may have
    std::chrono::milliseconds join{60'000};  ///< time that hosts have to come at first
    std::chrono::milliseconds last_call{
        15'000};                               ///< at first, for more hosts once there are enough
    std::chrono::milliseconds rejoin{60'000};  ///< time that lost hosts have to come back
    /// A host that cannot come ends the run not at once, but when it is known of all others, too.
    bool names_all_missing = false;
    /// That the run's secret is from, for messages; empty: the run has one of its own.
    std::string secret_file = {};
    RestartPolicy::Limits restarts;
  };
  Coordinator(TimePoint now, Settings settings);

  /// Times of events must not decrease. Do not call it after EndRun.
  std::vector<CoordinatorAction> handle(TimePoint now, const CoordinatorEvent& event);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  /// The attempt under way, or the last one; -1: none has begun.
  [[nodiscard]] int attempt() const { return placement_ ? placement_->attempt : -1; }
  /// Ranks of that attempt; 0: none has begun.
  [[nodiscard]] int world() const { return placement_ ? placement_->world() : 0; }
  struct RankOfHost {
    std::string host;  ///< for people
    RankState state;
  };
  /// Ranks of that attempt as the last heartbeats of their hosts showed them, in the order of their
  /// numbers.
  [[nodiscard]] std::vector<RankOfHost> ranks() const;
  /// When the oldest of those heartbeats came, of hosts that still have ranks; if none has, now.
  [[nodiscard]] TimePoint states_since() const;
  /// True if a host of that attempt has been silent, so that no rank is taken for one that hangs.
  [[nodiscard]] bool has_old_states() const;
  /// A host of that attempt whose agent is connected.
  struct AgentOfHost {
    std::string host;   ///< its name in the run
    std::string agent;  ///< as its Hello named it
    std::string shown;  ///< for people
    int first_rank = 0;
    int ranks = 0;
  };
  [[nodiscard]] std::vector<AgentOfHost> agents() const;
  /// The hosts of the run in the order of their numbers, and those that were refused.
  [[nodiscard]] std::vector<HostView> hosts() const;
  /// Nullopt: the run does not wait for hosts.
  [[nodiscard]] std::optional<WaitingView> waiting(TimePoint now) const;
  [[nodiscard]] bool is_running() const { return state_ == State::running; }
  /// True once the user or a scheduler has asked the run to end, or its ranks to save and end.
  [[nodiscard]] bool is_asked_to_end() const { return asked_to_stop_; }
  /// Step of the run's newest checkpoint, and its folder; -1: none.
  [[nodiscard]] std::int64_t committed() const { return committed_; }
  [[nodiscard]] const std::string& checkpoint() const { return checkpoint_; }
  /// Restarts so far that count now.
  [[nodiscard]] int restarts_within(TimePoint now) const { return policy_.restarts_within(now); }
  /// Starts of the ranks after failures, and those that were no failures: on more hosts, without
  /// one that was told to end, or as a number of ranks that fits.
  [[nodiscard]] int restarts() const { return restarts_; }
  [[nodiscard]] int regroupings() const { return regroupings_; }

 private:
  enum class State { gathering, running, ending, finished };
  struct Host {
    std::string name;
    std::string host_name = {};           ///< as its agent says; for people
    std::string address = {};             ///< from which its agent came; may be empty
    std::string agent = {};               ///< empty: none has come
    std::set<std::string> former = {};    ///< agents that another one has followed
    std::optional<Hello> successor = {};  ///< came while ranks of the agent before may be left
    bool connected = false;
    int slots = 1;
    int newest = -1;
    bool has_ranks = false;
    TimePoint last_beat{};   ///< when a sign of life came last
    std::int64_t beat = -1;  ///< number of the agent's newest heartbeat; -1: none
    TimePoint beat_came{};   ///< that one
    bool is_silent = false;  ///< in the attempt, which was said
    bool is_back = false;    ///< after it was silent: what it says of its ranks may be old
    int times_apart = 0;     ///< since: new heartbeats that came well after the one before
    std::optional<TimePoint> spoke_again = {};  ///< when its newest new heartbeat came
    std::optional<TimePoint> broke = {};        ///< when its connection broke
    int node = -1;                              ///< in the attempt; -1: not in it
    std::vector<TimePoint> failures = {};       ///< ends of attempts because of it
    bool is_spare_said = false;                 ///< that ranks do not fit on it was said
    bool is_given_up = false;  ///< what was to start its agent ended, which was said
    bool is_leaving = false;   ///< it was told to end: it has no part in the next attempt
    bool has_left = false;     ///< it has ended since, as it was told
    bool is_over = false;      ///< none of the attempt's ranks is left
    std::optional<AttemptFacts> facts = {};
    std::vector<RankState> ranks = {};  ///< as its last heartbeat showed those of the attempt
  };
  /// The first failure of the attempt.
  struct Cause {
    int node = 0;
    bool blames_a_peer = false;
    std::string lost = {};  ///< not empty: the host was lost
    std::optional<Hang> hang = {};
    std::vector<AttemptReport::OfRanks> evidence = {};
    std::string advice = {};  ///< of the host to blame
  };

  void on(const AgentSaid& event);
  void on(const ConnectionBroke& event);
  void on(const RunSignal& event);
  void on(const HostCannotCome& event);
  void on(const HostRefused& event);
  void on(const StrangerRefused& event);
  void give_way_to(const HostRefused& host);
  void on(const RanksHang& event);
  void on(const CoordinatorTick&);
  void hear(Host& host, const Hello& hello);
  void hear(Host& host, const Heartbeat& heartbeat);
  void hear(Host& host, const RankFailed& failed);
  void hear(Host& host, const AttemptEnded& ended);
  void hear(Host& host, const SignalCame& came);
  void hear(const Host& host, const StoreRequest& asked);
  void hear(const Host& host, const Evidence& evidence);
  void answer(const std::vector<SharedValues::Answered>& answers);
  static bool ends_the_run(int signal);
  void take_signal(int number);
  void tell_that_nothing_is_saved(int number);
  void tell_if_no_host_may_be_lost();
  void signal_ranks(int number);
  void finish_without_ranks();
  [[nodiscard]] bool is_of_host(const AttemptFacts& facts, const Host& host) const;

  void settle();
  void dismiss(Host& host, const std::string& agent, const std::string& why);
  void send_away(Host& host, const std::string& why);
  bool let_leave(Host& host, int number);
  void hasten_leave(const Host& host);
  void send_leaving_away();
  [[nodiscard]] std::optional<std::vector<int>> place_without(const Host& host);
  [[nodiscard]] std::string_view state_of(const Host& host) const;
  [[nodiscard]] std::string why_it_is_lost(const Host& host, std::string_view state) const;
  void adopt(Host& host, const Hello& hello);
  void gather();
  void give_up_waiting(const std::vector<Host*>& hosts);
  void give_up_misfit(const std::vector<Host*>& hosts);
  [[nodiscard]] bool cannot_get_hosts() const;
  void tell_of_spares(const std::vector<Host*>& hosts);
  void wait_for_hosts(const std::string& then);
  [[nodiscard]] std::vector<Host*> free_hosts();
  [[nodiscard]] std::vector<Host*> without_bad_ones(const std::vector<Host*>& hosts) const;
  [[nodiscard]] int failures_of(const Host& host) const;
  [[nodiscard]] std::optional<std::vector<int>> place(const std::vector<Host*>& hosts) const;
  [[nodiscard]] bool may_start(std::size_t free) const;
  [[nodiscard]] TimePoint gathers_until() const;
  [[nodiscard]] std::optional<TimePoint> last_call_ends() const;
  void grow_if_possible();
  [[nodiscard]] StartAttempt start_of(const Host& host) const;
  [[nodiscard]] bool can_do_without_some() const {
    return settings_.least_hosts < std::ssize(hosts_);
  }
  [[nodiscard]] std::chrono::seconds lock_wait_after(const AttemptReport& report,
                                                     const AttemptEnd& end) const;
  void blame_host();
  [[nodiscard]] std::string why_with_other_ranks(const AttemptReport& report,
                                                 const AttemptEnd& end);
  [[nodiscard]] std::string begins_from() const;
  enum class Missing { all, not_refused, refused };
  [[nodiscard]] std::string hosts_that_miss(Missing which = Missing::all) const;
  [[nodiscard]] bool is_refused(const Host& host) const;
  [[nodiscard]] std::string why_refused() const;
  [[nodiscard]] bool would_be_refused_again() const;
  void start(const std::vector<Host*>& hosts, const std::vector<int>& ranks);
  void remind(Host& host);
  static void note_end_of_ranks(Host& host);
  void note_life(Host& host);
  void note_states(Host& host);
  void note_silence(Host& host);
  void forward_signals(const Host& host, std::size_t first);
  void learn(const AttemptFacts& facts);
  void learn(std::int64_t committed, const std::string& checkpoint, std::int64_t step);
  void fail(Cause cause, const std::string& reason);
  void stop_ranks(const std::string& reason);
  void lose(Host& host, const std::string& why);
  void conclude();
  [[nodiscard]] AttemptReport report() const;
  [[nodiscard]] AttemptEnd end_of_attempt(const AttemptReport& report) const;
  void finish(int exit_code);
  void send(const Host& host, CoordinatorMessage message);

  [[nodiscard]] Host* find(const std::string& name);
  [[nodiscard]] bool has_any(const Host& host, const std::vector<int>& ranks) const;
  [[nodiscard]] static std::string shown(const Host& host);
  [[nodiscard]] std::string why_strangers_are_refused() const;
  [[nodiscard]] bool is_in_attempt(const Host& host) const { return host.node >= 0; }
  [[nodiscard]] std::optional<TimePoint> lease_ends(const Host& host) const;
  [[nodiscard]] std::optional<TimePoint> silence_begins(const Host& host) const;
  [[nodiscard]] bool has_lease(const Host& host) const;
  [[nodiscard]] std::optional<TimePoint> earlier_ranks_end() const;
  [[nodiscard]] bool are_states_new(const Host& host) const;
  [[nodiscard]] bool may_have_ranks(const Host& host) const;
  [[nodiscard]] bool is_free(const Host& host) const;
  [[nodiscard]] bool may_be_a_lost_spare(const Host& host) const {
    return state_ == State::running && !is_in_attempt(host) && host.broke;
  }

  /// A host because of which so many attempts have ended is left out.
  static constexpr int kMostFailures = 3;
  static constexpr const char* kItsConnectionBroke =
      "its mlaunch has ended, or the connection to it broke";
  static constexpr int kTryAgain = static_cast<int>(ExitCode::try_again);

  const Settings settings_;
  RestartPolicy policy_;
  State state_ = State::gathering;
  TimePoint now_;
  TimePoint gathering_since_;
  std::vector<Host> hosts_;
  std::optional<Placement> placement_;
  int newest_ = -1;      ///< the newest attempt that any host has told of
  SharedValues values_;  ///< of the attempt
  std::optional<Cause> cause_;
  std::string stop_reason_;
  int user_signal_ = 0;         ///< that ends the run; 0: none
  bool asked_to_stop_ = false;  ///< by a signal after which ranks may save
  std::vector<int> signals_;    ///< to the attempt
  SignalFilter signal_filter_;
  Worlds worlds_;
  std::optional<TimePoint> enough_since_;    ///< while gathering: hosts suffice
  std::optional<std::int64_t> spare_since_;  ///< newest checkpoint when a spare host was seen
  /// The attempt was asked to save and stop, to start again on more hosts, or without one.
  bool is_regrouping_ = false;
  bool is_hastened_ = false;                      ///< and then to end at once, without saving
  std::optional<TimePoint> ranks_awaited_until_;  ///< by a run that is to end before an attempt
  int restarts_ = 0, regroupings_ = 0;
  bool is_bound_said_ = false;       ///< that the run cannot go on without one of its hosts
  std::deque<HostRefused> refused_;  ///< that have not been let in since; the last kMostRefused
  std::set<std::string> strangers_;  ///< their addresses, likewise
  std::int64_t committed_ = -1;
  std::string checkpoint_;
  std::int64_t last_step_ = -1;
  std::chrono::seconds lock_wait_ = kKilledRanksLock;  ///< of the next attempt
  std::vector<CoordinatorAction> actions_;
};

}  // namespace strata::launcher
