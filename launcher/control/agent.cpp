#include "launcher/control/agent.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/check.h"

namespace strata::launcher {

Agent::Agent(Hello hello, std::optional<std::chrono::milliseconds> lease)
    : hello_(std::move(hello)), lease_(lease) {}

std::vector<AgentAction> Agent::connect(TimePoint now) {
  STRATA_CHECK(now >= now_);
  now_ = now;
  kill_if_lease_ended();
  send(hello_);
  if (last_end_) send(*last_end_);
  for (const SignalCame& came : came_) send(came);
  for (const auto& [id, request] : asked_) send(StoreRequest{hello_.newest, request});
  next_beat_ = now_;  // at once, so that a lease begins
  return std::exchange(actions_, {});
}

std::vector<AgentAction> Agent::handle(TimePoint now, const AgentEvent& event) {
  STRATA_CHECK(now >= now_);
  now_ = now;
  kill_if_lease_ended();
  std::visit([this](const auto& e) { on(e); }, event);
  return std::exchange(actions_, {});
}

std::optional<Agent::TimePoint> Agent::next_deadline() const {
  std::optional<TimePoint> next = next_beat_;
  if (has_ranks_ && lease_end_ && (!next || *lease_end_ < *next)) next = lease_end_;
  return next;
}

void Agent::on(const CoordinatorSaid& event) {
  std::visit([this](const auto& message) { obey(message); }, event.message);
}

/// Ranks that the agent itself has killed did not fail.
void Agent::on(const FirstFailure& event) {
  if (!lease_ended_) send(event.failed);
}

void Agent::on(const GroupEnded& event) {
  has_ranks_ = false;
  left_behind_ = event.facts.left_behind;
  asked_.clear();
  last_end_ = AttemptEnded{hello_.newest, event.facts, lease_ended_};
  send(*last_end_);
  next_beat_ = now_;
  end_if_dismissed();
}

void Agent::on(const AgentSignal& event) {
  const auto before = std::ranges::count(came_, event.number, &SignalCame::number);
  came_.push_back({event.number, static_cast<int>(before)});
  send(came_.back());
}

void Agent::on(const RankAsks& event) {
  if (!has_ranks_) return;
  asked_[event.request.id] = event.request;
  send(StoreRequest{hello_.newest, event.request});
}

void Agent::on(const HangDescribed& event) {
  send(Evidence{hello_.newest, event.text, event.advice, event.details});
}

void Agent::on(const AgentTick& event) {
  if (next_beat_ && *next_beat_ <= now_) beat(event.ranks);
}

/// A late message must start nothing: the coordinator may count on this host no longer.
void Agent::obey(const StartAttempt& start) {
  if (has_ranks_ || left_behind_ || dismissed_ || start.placement.attempt <= hello_.newest ||
      !may_have_ranks())
    return;
  hello_.newest = start.placement.attempt;
  hello_.has_had_ranks = has_ranks_ = true;
  lease_ended_ = false;
  signals_ = 0;
  last_end_.reset();
  actions_.emplace_back(StartGroup{start, lease_end_});
  next_beat_ = now_;
}

void Agent::obey(const StopAttempt& stop) {
  if (has_ranks_ && stop.attempt == hello_.newest) actions_.emplace_back(EndGroup{stop.reason});
  if (has_ranks_ || stop.attempt <= hello_.newest) return;
  hello_.newest = stop.attempt;  // the word to start it may still be on its way
  next_beat_ = now_;
}

void Agent::obey(const ForwardSignal& signal) {
  if (!has_ranks_ || signal.attempt != hello_.newest || signal.index != signals_) return;
  ++signals_;
  actions_.emplace_back(SignalGroup{signal.number});
}

void Agent::obey(const Lease& lease) {
  if (!lease_) return;
  tell_if_spare(lease.is_spare);
  if (!has_ranks_) hello_.newest = std::max(hello_.newest, lease.attempt - 1);
  std::optional<TimePoint> sent;
  while (!unanswered_.empty() && unanswered_.front().first <= lease.heartbeat) {
    if (unanswered_.front().first == lease.heartbeat) sent = unanswered_.front().second;
    unanswered_.pop_front();
  }
  if (!sent) return;  // answered before, or never sent by this process
  const TimePoint until = *sent + *lease_;
  if (until <= now_ || (has_ranks_ && !lease_end_)) return;  // ranks were killed already
  if (lease_end_ && until <= *lease_end_) return;
  lease_end_ = until;
  if (has_ranks_) actions_.emplace_back(SetLease{until});
}

/// Says it once for each time as a spare.
void Agent::tell_if_spare(bool is_spare) {
  if (is_spare && !is_spare_)
    actions_.emplace_back(Announce{
        fmt::format("host {} is a spare: the run goes on without it, and may give it ranks when "
                    "they start again",
                    hello_.host)});
  is_spare_ = is_spare;
}

void Agent::obey(const Dismiss& dismiss) {
  dismissed_ = dismiss;
  if (has_ranks_) actions_.emplace_back(EndGroup{"the run is over"});
  end_if_dismissed();
}

void Agent::obey(const StoreReply& reply) {
  if (reply.attempt != hello_.newest || asked_.erase(reply.answer.id) == 0) return;
  actions_.emplace_back(AnswerRank{reply.answer});
}

void Agent::obey(const Collect& collect) {
  if (has_ranks_ && collect.attempt == hello_.newest)
    actions_.emplace_back(DescribeHang{collect.hang});
}

void Agent::end_if_dismissed() {
  if (dismissed_ && !has_ranks_) actions_.emplace_back(EndAgent{*dismissed_});
}

/// Any event may be the first after a time in which the host did not run at all.
void Agent::kill_if_lease_ended() {
  if (!has_ranks_ || !lease_end_ || now_ < *lease_end_) return;
  actions_.emplace_back(KillGroup{"the coordinator of the run has not answered this host in time"});
  lease_end_.reset();
  lease_ended_ = true;
}

bool Agent::may_have_ranks() const { return !lease_ || (lease_end_ && now_ < *lease_end_); }

void Agent::beat(std::vector<RankState> ranks) {
  const Heartbeat heartbeat{beats_++, hello_.newest, has_ranks_ || left_behind_, signals_,
                            std::move(ranks)};
  if (lease_) unanswered_.emplace_back(heartbeat.number, now_);
  // Without answers for long, old ones could not give a lease any more.
  constexpr std::size_t kMostUnanswered = 64;
  if (unanswered_.size() > kMostUnanswered) unanswered_.pop_front();
  send(heartbeat);
  next_beat_ = now_ + kHeartbeat;
}

void Agent::send(AgentMessage message) {
  actions_.emplace_back(SendToCoordinator{std::move(message)});
}

}  // namespace strata::launcher
