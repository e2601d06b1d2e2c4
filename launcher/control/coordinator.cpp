#include "launcher/control/coordinator.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/error.h"

namespace strata::launcher {
namespace {

/// True if a rank was told to stop, and all of them did (75), as when a scheduler signals one task.
bool all_stopped_on_request(const AttemptReport& report) {
  return report.lost_because.empty() && !report.hung_rank &&
         std::ranges::all_of(report.hosts, [](const AttemptReport::OfHost& host) {
           return host.facts && host.facts->all_stopped && host.facts->was_asked;
         });
}

constexpr int kTryAgain = static_cast<int>(ExitCode::try_again);

/// A signal that leaves time to save asks for another start later; Ctrl-C does not.
int exit_code_without_ranks(int signal) {
  const bool later = signal == SIGTERM || signal == SIGHUP;
  return later ? kTryAgain : static_cast<int>(ExitCode::signal_base) + signal;
}

bool ends_the_run(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT ||
         signal == SIGPIPE;
}

/// Returns the last step that a rank of the attempt is known to have been in; -1: none.
std::int64_t newest_step(const AttemptReport& report) {
  std::int64_t newest = -1;
  for (const AttemptReport::OfHost& host : report.hosts)
    if (host.facts)
      for (const EndedRank& rank : host.facts->ranks) newest = std::max(newest, rank.step);
  return newest;
}

}  // namespace

Coordinator::Coordinator(TimePoint now, Settings settings)
    : settings_(std::move(settings)),
      policy_(settings_.restarts),
      now_(now),
      gathering_since_(now) {
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
  if (state_ == State::gathering) consider(gathers_until());
  if (const auto end = values_.next_deadline()) consider(*end);
  for (const Host& host : hosts_) {
    const bool has_part = is_in_attempt(host) && !host.is_over;
    if (!has_part && !(state_ == State::gathering && has_lease(host))) continue;
    if (state_ == State::running && host.broke) consider(*host.broke + kReconnect);
    if (const auto end = lease_ends(host)) consider(*end);
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

void Coordinator::on(const RunSignal& event) { take_signal(event.number, ""); }

/// It may have been told before, on a connection that broke.
void Coordinator::hear(const Host& host, const SignalCame& came) {
  const std::string source = host.name + "/" + host.agent;
  int& heard = signals_heard_[{source, came.number}];
  if (came.index < heard) return;
  heard = came.index + 1;
  take_signal(came.number, source);
}

std::vector<Coordinator::RankOfHost> Coordinator::ranks() const {
  std::vector<RankOfHost> ranks;
  for (const Host& host : hosts_)
    if (is_in_attempt(host))
      for (const RankState& state : host.ranks) ranks.push_back({shown(host), state});
  std::ranges::sort(ranks, {}, [](const RankOfHost& one) { return one.state.rank; });
  return ranks;
}

/// What an earlier attempt asks is not answered: its ranks are ended.
void Coordinator::hear(const Host& host, const StoreRequest& asked) {
  if (asked.attempt == attempt() && is_in_attempt(host))
    answer(values_.ask(now_, host.name, asked.request));
}

void Coordinator::answer(const std::vector<SharedValues::Answered>& answers) {
  for (const auto& [name, answer] : answers)
    if (const Host* host = find(name)) send(*host, StoreReply{attempt(), answer});
}

/// A scheduler signals every host of a job, and ranks take a second SIGTERM as haste. So equal
/// signals of several sources within a time are one.
void Coordinator::take_signal(int number, const std::string& source) {
  const auto last = last_signals_.find(number);
  if (last != last_signals_.end() && last->second.source != source &&
      now_ < last->second.when + kSameSignal)
    return;
  last_signals_[number] = {now_, source};
  // To suspend this mlaunch alone would end all ranks with their leases.
  if (number == SIGTSTP && settings_.lease) return;
  if (ends_the_run(number)) user_signal_ = number;
  // A scheduler warns with SIGUSR1, and ranks may take it as SIGTERM.
  asked_to_stop_ |= user_signal_ != 0 || number == SIGUSR1;
  if (state_ == State::gathering) {
    if (user_signal_ != 0) finish(exit_code_without_ranks(user_signal_));
    return;
  }
  signals_.push_back(number);
  for (const Host& host : hosts_)
    if (is_in_attempt(host) && !host.is_over) forward_signals(host, signals_.size() - 1);
}

void Coordinator::forward_signals(const Host& host, std::size_t first) {
  for (std::size_t i = first; i < signals_.size(); ++i)
    send(host, ForwardSignal{signals_[i], placement_->attempt, i});
}

/// One that was there is known by its connection.
void Coordinator::on(const HostCannotCome& event) {
  const Host* host = find(event.host);
  if (host == nullptr || !host->agent.empty() || state_ != State::gathering) return;
  actions_.emplace_back(
      Announce{fmt::format("host {} cannot take part: {}", shown(*host), event.reason)});
  finish(static_cast<int>(ExitCode::host));
}

void Coordinator::on(const RanksHang& event) {
  if (state_ != State::running) return;
  const int node = placement_->host_of(event.hang.rank);
  for (const Host& host : hosts_)
    if (is_in_attempt(host) && (host.node == node || has_held(host, event.hang)))
      send(host, Collect{placement_->attempt, event.hang});
  const std::string reason = event.hang.describe();
  fail({.node = node, .hung_rank = event.hang.rank, .hung = reason}, reason);
}

bool Coordinator::has_held(const Host& host, const Hang& hang) const {
  return std::ranges::any_of(hang.held,
                             [&](int rank) { return placement_->host_of(rank) == host.node; });
}

void Coordinator::hear(const Host& /*host*/, const Evidence& evidence) {
  if (evidence.attempt == attempt()) actions_.emplace_back(TellEvidence{evidence.text});
}

void Coordinator::on(const CoordinatorTick&) {
  answer(values_.expire(now_));
  for (Host& host : hosts_) {
    if (!is_in_attempt(host) || host.is_over) continue;
    if (const auto end = lease_ends(host); end && *end <= now_) {
      lose(host, "it has given no sign of life for " +
                     std::to_string((now_ - host.last_beat) / std::chrono::seconds(1)) + " s");
      host.is_over = true;  // its agent has killed what it had, or is gone with all of it
    } else if (state_ == State::running && host.broke && *host.broke + kReconnect <= now_) {
      lose(host, "its agent has ended, or the connection to it broke");
    }
  }
}

void Coordinator::hear(Host& host, const Hello& hello) {
  if (host.former.contains(hello.agent)) return dismiss(host, hello.agent);
  const bool is_another = !host.agent.empty() && host.agent != hello.agent;
  if (!is_another || !is_in_attempt(host) || host.is_over) return adopt(host, hello);
  if (host.successor && host.successor->agent != hello.agent) dismiss(host, host.successor->agent);
  host.successor = hello;
  lose(host, "its agent has ended, and another one has come");
}

/// Another agent has followed this one. It is dead, or was believed to be, and is never heard
/// again.
void Coordinator::dismiss(Host& host, const std::string& agent) {
  host.former.insert(agent);
  actions_.emplace_back(SendToAgent{
      host.name, agent,
      Dismiss{kTryAgain, fmt::format("another mlaunch has come as host {}", host.name)}});
}

void Coordinator::adopt(Host& host, const Hello& hello) {
  if (host.agent != hello.agent) {
    if (!host.agent.empty()) dismiss(host, host.agent);
    host.has_ranks = false;
  }
  if (host.successor && host.successor->agent == hello.agent) host.successor.reset();
  host.agent = hello.agent;
  host.host_name = hello.host_name;
  host.newest = hello.newest;
  host.slots = hello.slots;
  host.connected = true;
  host.broke.reset();
  host.last_beat = now_;
}

void Coordinator::hear(Host& host, const Heartbeat& heartbeat) {
  host.last_beat = now_;
  host.newest = heartbeat.newest;
  host.has_ranks = heartbeat.has_ranks;
  if (settings_.lease) send(host, Lease{heartbeat.number, attempt()});
  if (!is_in_attempt(host) || host.is_over) return;
  if (host.newest == placement_->attempt) host.ranks = heartbeat.ranks;
  remind(host);
  if (host.has_ranks && host.newest == placement_->attempt)
    forward_signals(host, heartbeat.signals);
}

/// Says again what the host has not done yet, or learns that it has none of the ranks any more.
void Coordinator::remind(Host& host) {
  const bool has_heard = host.newest >= placement_->attempt;
  if (state_ == State::running && !has_heard)
    send(host, StartAttempt{*placement_, host.node, last_step_});
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
  if (state_ != State::running) return;
  state_ = State::ending;
  stop_reason_ = reason;
  answer(values_.fail(reason));
  for (const Host& host : hosts_)
    if (is_in_attempt(host) && !host.is_over)
      send(host, StopAttempt{placement_->attempt, stop_reason_});
}

void Coordinator::lose(Host& host, const std::string& why) {
  const std::string reason = fmt::format("host {} is lost: {}", shown(host), why);
  fail({.node = host.node, .lost = reason}, reason);
}

/// Makes the transitions that follow from the state alone; called after every event.
void Coordinator::settle() {
  for (Host& host : hosts_)
    if (host.successor && (!is_in_attempt(host) || host.is_over))
      adopt(host, Hello(*host.successor));
  if (state_ == State::gathering) gather();
  if (state_ != State::running && state_ != State::ending) return;
  const bool all_over = std::ranges::all_of(
      hosts_, [&](const Host& host) { return !is_in_attempt(host) || host.is_over; });
  if (all_over) conclude();
}

void Coordinator::gather() {
  std::vector<Host*> free;
  for (Host& host : hosts_)
    if (is_free(host)) free.push_back(&host);
  if (may_start(free.size())) return start(free);
  if (now_ < gathers_until()) return;
  actions_.emplace_back(Announce{
      fmt::format("{} of {} hosts are there, and the run needs {}; missing: {}. Start it again "
                  "when they are",
                  free.size(), hosts_.size(), settings_.least_hosts, hosts_that_miss())});
  finish(kTryAgain);
}

/// Returns when hosts have had their time to come.
Coordinator::TimePoint Coordinator::gathers_until() const {
  return gathering_since_ + (attempt() < 0 ? settings_.join : settings_.rejoin);
}

/// Lists the hosts that are not there: "1 (gpu-07), 2".
std::string Coordinator::hosts_that_miss() const {
  std::string names;
  for (const Host& host : hosts_)
    if (!host.connected) names += (names.empty() ? "" : ", ") + shown(host);
  return names;
}

/// True if `free` hosts are all there will be: at first each has the time to come, later those that
/// are there need not wait for others.
bool Coordinator::may_start(std::size_t free) const {
  if (free == hosts_.size()) return true;
  if (free < static_cast<std::size_t>(settings_.least_hosts)) return false;
  if (now_ >= gathers_until()) return true;
  const bool another_comes = std::ranges::any_of(
      hosts_, [&](const Host& host) { return has_lease(host) && !is_free(host); });
  return attempt() >= 0 && !another_comes;
}

void Coordinator::start(const std::vector<Host*>& hosts) {
  Placement next{.slots = {}, .attempt = attempt() + 1};
  for (Host& host : hosts_) host.node = -1;
  for (Host* host : hosts) {
    host->node = static_cast<int>(next.slots.size());
    host->is_over = false;
    host->facts.reset();
    host->ranks.clear();
    next.slots.push_back(host->slots);
  }
  placement_ = std::move(next);
  cause_.reset();
  signals_.clear();
  state_ = State::running;
  values_.begin();
  for (const Host* host : hosts) send(*host, StartAttempt{*placement_, host->node, last_step_});
}

/// All ranks of the attempt are gone: starts again, or ends.
void Coordinator::conclude() {
  AttemptReport told = report();
  const AttemptEnd end = end_of_attempt(told);
  const RestartPolicy::Decision decision = policy_.after(now_, end);
  told.is_started_again = decision.restart;
  if (cause_ || user_signal_ != 0 || end.exit_code != 0) actions_.emplace_back(TellReport{told});
  if (!decision.restart) {
    if (!decision.why.empty()) actions_.emplace_back(Announce{decision.why});
    if (decision.gave_up) actions_.emplace_back(KeepEvidence{decision.why});
    return finish(decision.exit_code);
  }
  const std::string from = committed_ >= 0
                               ? fmt::format("step {}, saved in {}", committed_, checkpoint_)
                               : std::string("the beginning: nothing has been saved");
  actions_.emplace_back(
      Announce{fmt::format("starting the ranks again from {} (restart {} of {} in an hour)", from,
                           policy_.restarts_within(now_), policy_.most_restarts())});
  state_ = State::gathering;
  gathering_since_ = now_;
  gather();
  if (const std::string missing = hosts_that_miss(); state_ == State::gathering && !missing.empty())
    actions_.emplace_back(Announce{
        fmt::format("waiting up to {} s for host {}",
                    std::chrono::ceil<std::chrono::seconds>(settings_.rejoin).count(), missing)});
}

AttemptReport Coordinator::report() const {
  AttemptReport report{.attempt = placement_->attempt, .world = placement_->world()};
  report.committed = committed_;
  report.checkpoint = checkpoint_;
  report.hosts.resize(static_cast<std::size_t>(placement_->hosts()));
  for (const Host& host : hosts_)
    if (is_in_attempt(host))
      report.hosts[static_cast<std::size_t>(host.node)] = {
          shown(host), placement_->first_rank(host.node), host.facts};
  if (cause_) {
    report.failed_host = cause_->node;
    report.lost_because = cause_->lost;
    report.hung_rank = cause_->hung_rank;
    report.hung_because = cause_->hung;
  }
  return report;
}

AttemptEnd Coordinator::end_of_attempt(const AttemptReport& report) const {
  AttemptEnd end{.was_asked = asked_to_stop_ || !cause_ || all_stopped_on_request(report),
                 .committed = committed_};
  for (const AttemptReport::OfHost& host : report.hosts)
    end.left_behind |= host.facts && host.facts->left_behind;
  if (!cause_) {
    for (const AttemptReport::OfHost& host : report.hosts)
      if (end.exit_code == 0) end.exit_code = host.facts ? host.facts->exit_code : kTryAgain;
    return end;
  }
  const AttemptReport::OfHost& host = report.hosts[static_cast<std::size_t>(report.failed_host)];
  end.exit_code = kTryAgain;
  end.step = newest_step(report);
  end.signature = report.hung_rank ? report.hung_because : "host " + host.host + " is lost";
  if (!report.lost_because.empty() || report.hung_rank || !host.facts) return end;
  end.exit_code = host.facts->exit_code;
  if (!host.facts->failed) return end;
  const AttemptFacts::Failed& failed = *host.facts->failed;
  const EndedRank& rank =
      host.facts->ranks.at(static_cast<std::size_t>(failed.rank - host.first_rank));
  end.could_start = failed.spawn_error.empty();
  const Ending ending = rank.ending.value_or(Ending{Ending::Kind::killed, SIGKILL});
  end.done = rank.done && ending.kind == Ending::Kind::exited;
  end.out_of_memory =
      ending == Ending{Ending::Kind::killed, SIGKILL} && host.facts->out_of_memory_kills > 0;
  end.step = rank.step;
  end.signature = fmt::format("rank {} {}: {}", failed.rank, ending.describe(), rank.error);
  return end;
}

void Coordinator::finish(int exit_code) {
  state_ = State::finished;
  const std::string reason =
      exit_code == 0
          ? ""
          : fmt::format("the run has ended with code {}; its first host says why", exit_code);
  for (const Host& host : hosts_)
    if (host.connected) send(host, Dismiss{exit_code, reason});
  actions_.emplace_back(EndRun{exit_code});
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

/// Returns when the ranks of a host have ended for certain; nullopt if no lease limits them.
std::optional<Coordinator::TimePoint> Coordinator::lease_ends(const Host& host) const {
  if (!settings_.lease) return {};
  return host.last_beat + *settings_.lease + kLeaseMargin;
}

/// True if the host is there and answers.
bool Coordinator::has_lease(const Host& host) const {
  const auto end = lease_ends(host);
  return host.connected && (!end || now_ < *end);
}

/// True if ranks may start on the host.
bool Coordinator::is_free(const Host& host) const { return has_lease(host) && !host.has_ranks; }

}  // namespace strata::launcher
