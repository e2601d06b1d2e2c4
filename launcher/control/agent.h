// The agent of one host, as a pure function of events and their times: it starts and ends the ranks
// that the coordinator says, and ends them by itself when its lease ends. It asks nobody then, so
// that a host that is cut off never has ranks while others start in their place.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "launcher/control/announce.h"
#include "launcher/control/messages.h"

namespace strata::launcher {

inline constexpr std::chrono::milliseconds kHeartbeat{1000};
/// Ranks may live so long after the sending of the last heartbeat that was answered.
inline constexpr std::chrono::milliseconds kLease{5000};

// Events besides messages of the coordinator.
struct CoordinatorSaid {
  CoordinatorMessage message;
};
struct FirstFailure {  ///< of a rank of this host, before the coordinator knows of it
  RankFailed failed;
};
struct GroupEnded {  ///< ranks and their descendants are gone
  AttemptFacts facts;
};
struct AgentSignal {  ///< to the agent, from a scheduler or a user
  int number = 0;
};
struct RankAsks {  ///< for a value that all hosts share
  ValueRequest request;
};
struct HangDescribed {  ///< as DescribeHang asked
  std::string text;
  std::string advice;
  std::string details = {};  ///< as Evidence has them
};
struct AgentTick {                    ///< next_deadline() has passed
  std::vector<RankState> ranks = {};  ///< as they are now
};
using AgentEvent = std::variant<CoordinatorSaid, FirstFailure, GroupEnded, AgentSignal, RankAsks,
                                HangDescribed, AgentTick>;

// Actions, to be done in the given order.
struct SendToCoordinator {
  AgentMessage message;
};
struct StartGroup {
  StartAttempt start;
  std::optional<std::chrono::steady_clock::time_point> lease = {};  ///< as SetLease has it
};
struct EndGroup {  ///< as after the failure of a peer
  std::string reason;
};
struct SignalGroup {
  int number = 0;
};
struct KillGroup {  ///< SIGKILL to all at once
  std::string reason;
};
struct SetLease {  ///< on the status pages of all ranks
  std::chrono::steady_clock::time_point until;
};
struct DescribeHang {  ///< and answer with HangDescribed, before anything else is done
  Hang hang;
};
struct AnswerRank {
  ValueAnswer answer;
};
struct EndAgent {
  Dismiss dismiss;
};
using AgentAction = std::variant<SendToCoordinator, StartGroup, EndGroup, SignalGroup, KillGroup,
                                 SetLease, AnswerRank, DescribeHang, Announce, EndAgent>;

class Agent {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `lease`: nullopt if the coordinator is in the same process, so that none is needed.
  Agent(Hello hello, std::optional<std::chrono::milliseconds> lease);

  /// Says Hello, and what a broken connection may have lost. Call it for each new connection.
  std::vector<AgentAction> connect(TimePoint now);
  /// Times of events must not decrease.
  std::vector<AgentAction> handle(TimePoint now, const AgentEvent& event);
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  [[nodiscard]] bool has_ranks() const { return has_ranks_; }
  /// True once ranks have started: a spare host has had none, whatever attempts it knows of.
  [[nodiscard]] bool has_had_ranks() const { return hello_.has_had_ranks; }

 private:
  void on(const CoordinatorSaid& event);
  void on(const FirstFailure& event);
  void on(const GroupEnded& event);
  void on(const AgentSignal& event);
  void on(const RankAsks& event);
  void on(const HangDescribed& event);
  void on(const AgentTick& event);
  void obey(const StartAttempt& start);
  void obey(const StopAttempt& stop);
  void obey(const ForwardSignal& signal);
  void obey(const Lease& lease);
  void obey(const Dismiss& dismiss);
  void obey(const StoreReply& reply);
  void obey(const Collect& collect);

  void beat(std::vector<RankState> ranks);
  void send(AgentMessage message);
  void end_if_dismissed();
  void kill_if_lease_ended();
  void tell_if_spare(bool is_spare);
  [[nodiscard]] bool may_have_ranks() const;

  Hello hello_;  ///< hello_.newest: older attempts never start again
  std::optional<std::chrono::milliseconds> lease_;
  TimePoint now_{};
  bool has_ranks_ = false;
  bool left_behind_ = false;  ///< what was killed did not end: no ranks start here
  std::optional<Dismiss> dismissed_;
  std::int64_t beats_ = 0;
  std::optional<TimePoint> next_beat_;
  std::optional<TimePoint> lease_end_;
  std::deque<std::pair<std::int64_t, TimePoint>> unanswered_;  ///< heartbeats, oldest first
  std::map<std::uint64_t, ValueRequest> asked_;                ///< by ranks, and not answered yet
  std::vector<SignalCame> came_;                               ///< signals to the agent
  std::size_t signals_ = 0;                                    ///< that the ranks got
  bool lease_ended_ = false;                                   ///< while the ranks lived
  bool is_spare_ = false;                                      ///< as the coordinator said last
  std::optional<AttemptEnded> last_end_;
  std::vector<AgentAction> actions_;
};

}  // namespace strata::launcher
