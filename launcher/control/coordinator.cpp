#include "launcher/control/coordinator.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "launcher/control/ending.h"

namespace strata::launcher {
namespace {

/// True for signals after which ranks may save.
bool stops_well(int signal) { return signal == SIGTERM || signal == SIGHUP || signal == SIGUSR1; }

/// A signal that leaves time to save asks for another start later; Ctrl-C does not.
int exit_code_without_ranks(int signal) {
  return stops_well(signal) ? static_cast<int>(ExitCode::try_again)
                            : static_cast<int>(ExitCode::signal_base) + signal;
}

/// So many hosts whose ranks wait for those to blame are asked for what holds their ranks.
constexpr int kMostWitnesses = 4;

}  // namespace

Coordinator::Coordinator(TimePoint now, Settings settings)
    : settings_(std::move(settings)),
      policy_(settings_.restarts),
      now_(now),
      gathering_since_(now),
      worlds_(settings_.worlds, settings_.least_hosts) {
  for (const std::string& name : settings_.hosts) hosts_.push_back({.name = name});
}

std::vector<CoordinatorAction> Coordinator::handle(TimePoint now, const CoordinatorEvent& event) {
  STRATA_CHECK(state_ != State::finished);
  STRATA_CHECK(now >= now_);
  now_ = now;
  std::visit([this](const auto& e) { on(e); }, event);
  settle();
  return std::exchange(actions_, {});
}

std::optional<Coordinator::TimePoint> Coordinator::next_deadline() const {
  std::optional<TimePoint> next;
  const auto consider = [&](TimePoint time) {
    if (!next || time < *next) next = time;
  };
  if (const auto earlier = earlier_ranks_end(); earlier && now_ < *earlier) {
    consider(*earlier);  // gather() does nothing before
  } else if (state_ == State::gathering) {
    consider(ranks_awaited_until_.value_or(gathers_until()));
    if (const auto end = last_call_ends()) consider(*end);
  }
  if (const auto end = values_.next_deadline()) consider(*end);
  for (const Host& host : hosts_) {
    const bool has_part = is_in_attempt(host) && !host.is_over;
    if (may_be_a_lost_spare(host)) consider(*host.broke + kReconnect);
    const bool is_awaited = state_ == State::gathering && (has_lease(host) || may_have_ranks(host));
    if (!has_part && !is_awaited) continue;
    if (has_part && host.broke) consider(*host.broke + kReconnect);
    if (const auto end = lease_ends(host)) consider(*end);
    if (const auto begin = silence_begins(host)) consider(*begin);
  }
  return next;
}

void Coordinator::on(const AgentSaid& event) {
  Host* host = find(event.host);
  if (host == nullptr) return;  // the shell refuses hosts that are not the run's
  if (const auto* hello = std::get_if<Hello>(&event.message)) return hear(*host, *hello);
  if (const auto* ended = std::get_if<AttemptEnded>(&event.message)) learn(ended->facts);
  if (const auto* beat = std::get_if<Heartbeat>(&event.message))
    for (const RankState& rank : beat->ranks) learn(rank.committed, rank.checkpoint, rank.step);
  if (event.agent != host->agent) return;  // it counts once nothing of the agent before is left
  std::visit([&](const auto& message) { hear(*host, message); }, event.message);
}

void Coordinator::on(const ConnectionBroke& event) {
  Host* host = find(event.host);
  if (host == nullptr) return;
  if (host->successor && host->successor->agent == event.agent) host->successor.reset();
  if (host->agent != event.agent || !host->connected) return;
  host->connected = false;
  host->broke = now_;
}

void Coordinator::on(const RunSignal& event) {
  if (signal_filter_.is_first(now_, "", event.number)) take_signal(event.number);
}

/// What an earlier attempt asks is not answered: its ranks are ended.
void Coordinator::hear(const Host& host, const StoreRequest& asked) {
  if (asked.attempt != attempt() || !is_in_attempt(host)) return;
  const ValueRequest& request = asked.request;
  if (request.is_put && host.node == 0 && request.key.ends_with(kWorldsKey))
    if (auto said = parse_worlds(request.value)) {
      worlds_.admit(*std::move(said));
      tell_if_no_host_may_be_lost();
    }
  answer(values_.ask(now_, host.name, request));
}

void Coordinator::answer(const std::vector<SharedValues::Answered>& answers) {
  for (const auto& [name, answer] : answers)
    if (const Host* host = find(name)) send(*host, StoreReply{attempt(), answer});
}

/// True for signals after which no other attempt follows.
bool Coordinator::ends_the_run(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

void Coordinator::take_signal(int number) {
  // To suspend this mlaunch alone would end all ranks with their leases.
  if (number == SIGTSTP && settings_.lease) return;
  const bool is_asked_again = asked_to_stop_;
  if (state_ == State::ending && stops_well(number)) tell_that_nothing_is_saved(number);
  if (ends_the_run(number)) user_signal_ = number;
  // A scheduler warns with SIGUSR1, and ranks may take it as SIGTERM.
  asked_to_stop_ |= user_signal_ != 0 || number == SIGUSR1;
  if (state_ == State::gathering) {  // gather() ends the run if it is to end
    if (asked_to_stop_ && !is_asked_again && earlier_ranks_end())
      actions_.emplace_back(Announce{
          "the run ends once ranks that an earlier mlaunch started have ended for certain"});
    return;
  }
  // They save and stop already, and would take another word as haste.
  if (is_regrouping_ && stops_well(number) && !is_asked_again) return;
  signal_ranks(number);
}

/// A failure has ended the ranks; who asks for their end may count on a checkpoint of this moment.
void Coordinator::tell_that_nothing_is_saved(int number) {
  if (asked_to_stop_ || is_regrouping_) return;
  const std::string before = committed_ < 0
                                 ? std::string("nothing has been saved before")
                                 : fmt::format("step {} is saved in {}", committed_, checkpoint_);
  actions_.emplace_back(Announce{
      fmt::format("{} comes after a failure has ended the ranks, so that they save nothing now: {}",
                  signal_name(number), before)});
}

/// Ends a run that is to end, once no rank is left on a host, or after a lease with its margin:
/// ranks that cannot be killed would be waited for in vain.
void Coordinator::finish_without_ranks() {
  if (!ranks_awaited_until_)
    ranks_awaited_until_ =
        now_ + settings_.lease.value_or(std::chrono::milliseconds(0)) + kLeaseMargin;
  if (now_ >= *ranks_awaited_until_ ||
      std::ranges::none_of(hosts_, [this](const Host& host) { return may_have_ranks(host); })) {
    if (hosts_.size() > 1)
      actions_.emplace_back(Announce{
          "the run ends, as it was asked to; it waited for hosts and has no ranks" +
          (committed_ < 0 ? std::string()
                          : fmt::format(": step {} is saved in {}", committed_, checkpoint_))});
    finish(exit_code_without_ranks(user_signal_ != 0 ? user_signal_ : SIGUSR1));
  }
}

void Coordinator::signal_ranks(int number) {
  signals_.push_back(number);
  for (const Host& host : hosts_)
    if (is_in_attempt(host) && !host.is_over) forward_signals(host, signals_.size() - 1);
}

void Coordinator::forward_signals(const Host& host, std::size_t first) {
  for (std::size_t i = first; i < signals_.size(); ++i)
    send(host, ForwardSignal{signals_[i], placement_->attempt, i});
}

void Coordinator::on(const RanksHang& event) {
  if (state_ != State::running) return;
  // Ranks that a user ends die one after the other: the last one is none that hangs.
  if (user_signal_ == SIGINT || user_signal_ == SIGQUIT) return;
  // Where a host is silent, either it answers soon, or it is lost and no rank hangs.
  if (has_old_states()) return;
  Hang hang = event.hang;
  const int node = placement_->host_of(hang.rank);
  for (const Host& host : hosts_)
    if (host.node == node && placement_->hosts() > 1) hang.host = shown(host);
  actions_.emplace_back(Announce{hang.describe()});
  int witnesses = 0;
  for (const Host& host : hosts_) {
    if (!is_in_attempt(host)) continue;
    const bool is_to_blame = host.node == node || has_any(host, hang.held);
    if (is_to_blame || (has_any(host, hang.waiting) && ++witnesses <= kMostWitnesses))
      send(host, Collect{placement_->attempt, hang});
  }
  fail({.node = node, .hang = hang}, hang.describe());
}

bool Coordinator::has_any(const Host& host, const std::vector<int>& ranks) const {
  return std::ranges::any_of(ranks,
                             [&](int rank) { return placement_->host_of(rank) == host.node; });
}

void Coordinator::hear(const Host& host, const Evidence& evidence) {
  if (evidence.attempt != attempt() || !is_in_attempt(host) || !cause_ || !cause_->hang) return;
  cause_->evidence.push_back({shown(host), evidence.text, evidence.details});
  if (host.node == cause_->node) cause_->advice = evidence.advice;
}

void Coordinator::hear(Host& host, const Heartbeat& heartbeat) {
  note_life(host);
  host.newest = heartbeat.newest;
  newest_ = std::max(newest_, heartbeat.newest);
  host.has_ranks = heartbeat.has_ranks;
  if (heartbeat.number > host.beat) {
    host.beat = heartbeat.number;
    host.beat_came = now_;
    note_states(host);
  }
  const bool is_spare = state_ == State::running && !is_in_attempt(host);
  if (settings_.lease) send(host, Lease{heartbeat.number, attempt(), is_spare});
  // An earlier coordinator of the run may have started them, and died.
  if (host.has_ranks && state_ == State::gathering)
    send(host, StopAttempt{host.newest, "the run starts again"});
  if (!is_in_attempt(host) || host.is_over) return;
  if (host.newest == placement_->attempt && host.has_ranks)
    host.ranks = heartbeat.ranks;
  else if (host.newest == placement_->attempt)
    note_end_of_ranks(host);
  remind(host);
  if (host.has_ranks && host.newest == placement_->attempt)
    forward_signals(host, heartbeat.signals);
}

/// Ranks of other hosts may still hang, and these are not to blame for it.
void Coordinator::note_end_of_ranks(Host& host) {
  for (RankState& rank : host.ranks) rank.ended = true;
}

/// Says again what the host has not done yet, or learns that it has none of the ranks any more.
void Coordinator::remind(Host& host) {
  const bool has_heard = host.newest >= placement_->attempt;
  if (state_ == State::running && !has_heard) send(host, start_of(host));
  if (state_ != State::ending) return;
  if (has_heard && !host.has_ranks)
    host.is_over = true;
  else
    send(host, StopAttempt{placement_->attempt, stop_reason_});
}

void Coordinator::hear(Host& host, const RankFailed& failed) {
  if (!is_in_attempt(host) || failed.attempt != placement_->attempt) return;
  fail({.node = host.node, .blames_a_peer = failed.blames_a_peer}, failed.reason);
}

/// False for what no agent of the host tells.
bool Coordinator::is_of_host(const AttemptFacts& facts, const Host& host) const {
  const int first = placement_->first_rank(host.node), ranks = placement_->ranks_of(host.node);
  return std::cmp_equal(facts.ranks.size(), ranks) &&
         (!facts.failed || (facts.failed->rank >= first && facts.failed->rank < first + ranks));
}

void Coordinator::hear(Host& host, const AttemptEnded& ended) {
  if (!is_in_attempt(host) || ended.attempt != placement_->attempt || host.facts) return;
  if (is_of_host(ended.facts, host)) host.facts = ended.facts;
  host.is_over = true;
  host.has_ranks = false;
  note_end_of_ranks(host);
  if (ended.lease_ended)
    lose(host, "it had no answer from here for too long, and has ended its ranks");
  else if (ended.facts.failed && !ended.facts.was_asked)
    fail({.node = host.node, .blames_a_peer = ended.facts.exit_code == kTryAgain},
         fmt::format("rank {} failed", ended.facts.failed->rank));
}

void Coordinator::learn(const AttemptFacts& facts) {
  learn(facts.committed, facts.checkpoint, -1);
  for (const EndedRank& rank : facts.ranks) learn(-1, "", rank.step);
}

/// A checkpoint is one, whoever tells of it, however late; -1: there is none.
void Coordinator::learn(std::int64_t committed, const std::string& checkpoint, std::int64_t step) {
  if (committed > committed_) {
    committed_ = committed;
    checkpoint_ = checkpoint;
  }
  last_step_ = std::max(last_step_, step);
}

/// Keeps the first cause; but one that only blames a peer gives way to one that does not.
void Coordinator::fail(Cause cause, const std::string& reason) {
  if (!cause_ || (cause_->blames_a_peer && !cause.blames_a_peer)) cause_ = std::move(cause);
  stop_ranks(reason);
}

/// Ends the attempt: all its ranks end as if a peer had failed.
void Coordinator::stop_ranks(const std::string& reason) {
  if (state_ != State::running) return;
  state_ = State::ending;
  stop_reason_ = reason;
  answer(values_.fail(reason));
  for (const Host& host : hosts_)
    if (is_in_attempt(host) && !host.is_over)
      send(host, StopAttempt{placement_->attempt, stop_reason_});
}

void Coordinator::lose(Host& host, const std::string& why) {
  const std::string is_lost = fmt::format("host {} is lost: ", shown(host));
  const std::string reason = is_lost + why;
  // Others may be lost with the first one; each is told once.
  if (cause_ && !cause_->lost.empty() && cause_->lost.find(is_lost) == std::string::npos)
    cause_->lost += "; " + reason;
  fail({.node = host.node, .lost = reason}, reason);
}

void Coordinator::send(const Host& host, CoordinatorMessage message) {
  if (host.connected) actions_.emplace_back(SendToAgent{host.name, host.agent, std::move(message)});
}

/// Returns "1 (gpu-07)" for a host whose name in the run is a number.
std::string Coordinator::shown(const Host& host) {
  return host.host_name.empty() ? host.name : fmt::format("{} ({})", host.name, host.host_name);
}

Coordinator::Host* Coordinator::find(const std::string& name) {
  const auto found = std::ranges::find(hosts_, name, &Host::name);
  return found == hosts_.end() ? nullptr : &*found;
}

}  // namespace strata::launcher
