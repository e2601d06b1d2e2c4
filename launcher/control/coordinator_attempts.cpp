// When attempts of a run begin and end: which hosts take part, and whether another one follows.
#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "launcher/control/coordinator.h"

namespace strata::launcher {
namespace {

/// True if ranks were told to stop, and all of them did (75).
bool all_stopped(const AttemptReport& report) {
  return std::ranges::all_of(report.hosts, [](const AttemptReport::OfHost& host) {
    return host.facts && host.facts->all_stopped && host.facts->was_asked;
  });
}

/// True for that, too, if only a rank was told, as when a scheduler signals one task.
bool all_stopped_on_request(const AttemptReport& report) {
  return !report.hang && all_stopped(report);
}

/// True if all ranks had done and saved their work, whatever became of their processes.
bool all_are_done(const AttemptReport& report) {
  return std::ranges::all_of(report.hosts, [](const AttemptReport::OfHost& host) {
    return host.facts && std::ranges::all_of(host.facts->ranks, &EndedRank::done);
  });
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

/// Makes the transitions that follow from the state alone; called after every event.
void Coordinator::settle() {
  for (Host& host : hosts_)
    if (host.successor && !may_have_ranks(host)) adopt(host, Hello(*host.successor));
  if (state_ == State::gathering) gather();
  if (state_ == State::running) grow_if_possible();
  if (state_ != State::running && state_ != State::ending) return;
  const bool all_over = std::ranges::all_of(
      hosts_, [&](const Host& host) { return !is_in_attempt(host) || host.is_over; });
  if (all_over) conclude();
}

void Coordinator::gather() {
  if (const auto end = earlier_ranks_end(); end && now_ < *end) return;
  if (asked_to_stop_) return finish_without_ranks();
  const std::vector<Host*> hosts = free_hosts();
  const std::optional<std::vector<int>> ranks = place(hosts);
  if (!ranks) {
    enough_since_.reset();
    if (cannot_get_hosts()) return finish(static_cast<int>(ExitCode::host));
    if (std::ssize(hosts) == std::ssize(hosts_)) return give_up_misfit(hosts);
    if (now_ >= gathers_until()) give_up_waiting(hosts);
    return;
  }
  if (!enough_since_) enough_since_ = now_;
  if (may_start(hosts.size())) start(hosts, *ranks);
}

/// True if what was to start the agent of a host that the run needs has ended without one.
bool Coordinator::cannot_get_hosts() const {
  if (can_do_without_some() || std::ranges::none_of(hosts_, &Host::is_given_up)) return false;
  return !settings_.names_all_missing || std::ranges::all_of(hosts_, [](const Host& host) {
    return host.is_given_up || host.connected;
  });
}

/// All hosts are there, and cannot hold what the run needs.
void Coordinator::give_up_misfit(const std::vector<Host*>& hosts) {
  int slots = 0;
  for (const Host* host : hosts) slots += host->slots;
  actions_.emplace_back(
      Announce{fmt::format("all {} hosts are there with {} ranks together, and the run needs {}",
                           hosts.size(), slots, worlds_.describe())});
  finish(static_cast<int>(ExitCode::configuration));
}

void Coordinator::give_up_waiting(const std::vector<Host*>& hosts) {
  std::string text = fmt::format("{} of {} hosts are there, and the run needs {}", hosts.size(),
                                 hosts_.size(), settings_.least_hosts);
  if (std::ssize(hosts) >= settings_.least_hosts)
    text += fmt::format(" that hold {}", worlds_.describe());
  if (const std::string missing = hosts_that_miss(); !missing.empty())
    text += "; missing: host " + missing;
  text += why_refused();
  const bool is_final = would_be_refused_again();
  text += is_final ? ". Mend that before it starts again" : ". Start it again when they are";
  if (committed_ >= 0)
    text +=
        fmt::format(": --resume auto goes on from step {}, saved in {}", committed_, checkpoint_);
  actions_.emplace_back(Announce{text});
  finish(is_final ? static_cast<int>(ExitCode::configuration) : kTryAgain);
}

/// Returns the hosts on which ranks may start, in order.
std::vector<Coordinator::Host*> Coordinator::free_hosts() {
  std::vector<Host*> free;
  for (Host& host : hosts_)
    if (is_free(host)) free.push_back(&host);
  return without_bad_ones(free);
}

/// Returns those of the hosts that have not failed too often, or all if these do not suffice.
std::vector<Coordinator::Host*> Coordinator::without_bad_ones(
    const std::vector<Host*>& hosts) const {
  std::vector<Host*> good;
  for (Host* host : hosts)
    if (failures_of(*host) < kMostFailures) good.push_back(host);
  return place(good) ? good : hosts;
}

/// Counts the attempts that lately ended because of the host.
int Coordinator::failures_of(const Host& host) const {
  return static_cast<int>(std::ranges::count_if(
      host.failures, [this](TimePoint time) { return now_ - time < RestartPolicy::kWindow; }));
}

/// Returns the ranks of each host; nullopt: they cannot hold what the run needs.
std::optional<std::vector<int>> Coordinator::place(const std::vector<Host*>& hosts) const {
  std::vector<int> slots;
  for (const Host* host : hosts) slots.push_back(host->slots);
  return worlds_.place(slots);
}

/// Returns when hosts have had their time to come.
Coordinator::TimePoint Coordinator::gathers_until() const {
  return gathering_since_ + (attempt() < 0 ? settings_.join : settings_.rejoin);
}

/// Lists the hosts that are not there: "1 (gpu-07), 2".
std::string Coordinator::hosts_that_miss(Missing which) const {
  std::string names;
  for (const Host& host : hosts_) {
    if (host.connected) continue;
    if (which != Missing::all && is_refused(host) != (which == Missing::refused)) continue;
    names += (names.empty() ? "" : ", ") + shown(host);
  }
  return names;
}

/// Returns when, at first, hosts have had their time to join those that suffice.
std::optional<Coordinator::TimePoint> Coordinator::last_call_ends() const {
  if (!enough_since_ || attempt() >= 0) return {};
  return *enough_since_ + settings_.last_call;
}

/// True if `free` hosts, which suffice, are all there will be: at first others have some time to
/// come, later those that are there need not wait for them.
bool Coordinator::may_start(std::size_t free) const {
  if (free == hosts_.size() || now_ >= gathers_until()) return true;
  if (const auto end = last_call_ends()) return now_ >= *end;
  return std::ranges::none_of(hosts_,
                              [&](const Host& host) { return has_lease(host) && !is_free(host); });
}

void Coordinator::start(const std::vector<Host*>& hosts, const std::vector<int>& ranks) {
  // An earlier coordinator of the run may have begun attempts.
  Placement next{.slots = {}, .attempt = std::max(attempt(), newest_) + 1};
  for (Host& host : hosts_) host.node = -1;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (ranks[i] == 0) continue;
    hosts[i]->node = static_cast<int>(next.slots.size());
    hosts[i]->is_over = false;
    hosts[i]->facts.reset();
    hosts[i]->ranks.clear();
    next.slots.push_back(ranks[i]);
  }
  for (Host& host : hosts_)
    if (!is_in_attempt(host)) host.broke.reset();  // it was missing, and is no spare
  // The host of the coordinator before may be gone.
  if (!placement_ && next.attempt > 0) lock_wait_ = kLostHostsLock;
  placement_ = std::move(next);
  cause_.reset();
  signals_.clear();
  enough_since_.reset();
  spare_since_.reset();
  is_regrouping_ = is_hastened_ = false;
  state_ = State::running;
  values_.begin();
  for (const Host* host : hosts)
    if (is_in_attempt(*host)) send(*host, start_of(*host));
}

StartAttempt Coordinator::start_of(const Host& host) const {
  return {*placement_, host.node, last_step_, can_do_without_some(), lock_wait_};
}

/// Hosts may have come that hold a larger world: after the next checkpoint the ranks save, stop and
/// start again. A run that has said nothing of its worlds could not go on as more ranks.
void Coordinator::grow_if_possible() {
  if (!worlds_.may_grow() || is_regrouping_ || asked_to_stop_) return;
  std::vector<Host*> hosts;
  for (Host& host : hosts_)
    if (is_in_attempt(host) || is_free(host)) hosts.push_back(&host);
  hosts = without_bad_ones(hosts);
  std::string spare;
  for (const Host* host : hosts)
    if (!is_in_attempt(*host)) spare += (spare.empty() ? "" : ", ") + shown(*host);
  const auto ranks = spare.empty() ? std::nullopt : place(hosts);
  const int possible = ranks ? std::accumulate(ranks->begin(), ranks->end(), 0) : 0;
  if (possible <= world()) {
    if (!spare.empty()) tell_of_spares(hosts);
    return spare_since_.reset();
  }
  if (!spare_since_) {
    spare_since_ = committed_;
    actions_.emplace_back(Announce{fmt::format(
        "host {} is there: after the next checkpoint the run goes on as {} ranks instead of {}",
        spare, possible, world())});
  } else if (committed_ > *spare_since_) {
    is_regrouping_ = true;
    signal_ranks(SIGUSR1);
  }
}

/// Says once of each spare host that the run cannot make use of it now.
void Coordinator::tell_of_spares(const std::vector<Host*>& hosts) {
  for (Host* host : hosts) {
    if (is_in_attempt(*host) || std::exchange(host->is_spare_said, true)) continue;
    actions_.emplace_back(Announce{
        fmt::format("host {} is there as a spare: the {} ranks of the run are the most that fit, "
                    "as it admits {}",
                    shown(*host), world(), worlds_.describe())});
  }
}

/// All ranks of the attempt are gone: starts again, or ends.
void Coordinator::conclude() {
  AttemptReport told = report();
  const AttemptEnd end = end_of_attempt(told);
  lock_wait_ = lock_wait_after(told, end);
  if (const std::string why = why_with_other_ranks(told, end); !why.empty()) {
    ++regroupings_;
    return wait_for_hosts(why);
  }
  if (cause_ && !cause_->blames_a_peer) blame_host();
  const RestartPolicy::Decision decision = policy_.after(now_, end);
  told.is_started_again = decision.restart;
  if (cause_ || user_signal_ != 0 || end.exit_code != 0) actions_.emplace_back(TellReport{told});
  if (!decision.restart) {
    if (!decision.why.empty()) actions_.emplace_back(Announce{decision.why});
    if (decision.gave_up) actions_.emplace_back(KeepEvidence{decision.why});
    return finish(decision.exit_code);
  }
  ++restarts_;
  wait_for_hosts(fmt::format("starting the ranks again from {} (restart {} of {} in an hour)",
                             begins_from(), policy_.restarts_within(now_),
                             policy_.most_restarts()));
}

/// Says where the next attempt begins: "step 40, saved in out/step-40".
std::string Coordinator::begins_from() const {
  return committed_ >= 0 ? fmt::format("step {}, saved in {}", committed_, checkpoint_)
                         : "the beginning: nothing has been saved";
}

/// Returns how long ranks of the next attempt wait for locks that may be left: once an attempt has
/// made a step it had the lock itself, so that of a host lost before is gone.
std::chrono::seconds Coordinator::lock_wait_after(const AttemptReport& report,
                                                  const AttemptEnd& end) const {
  if (!report.lost_because.empty() || end.is_kept_out) return kLostHostsLock;
  return newest_step(report) >= 0 ? kKilledRanksLock : lock_wait_;
}

/// Notes that the attempt ended because of a host.
void Coordinator::blame_host() {
  const auto host = std::ranges::find(hosts_, cause_->node, &Host::node);
  host->failures.push_back(now_);
  if (failures_of(*host) != kMostFailures || !can_do_without_some()) return;
  actions_.emplace_back(
      Announce{fmt::format("{} attempts have ended because of host {}: it is left out while others "
                           "suffice",
                           kMostFailures, shown(*host))});
}

/// Returns why the ranks start again as another number, which is no failure; "": they do not.
std::string Coordinator::why_with_other_ranks(const AttemptReport& report, const AttemptEnd& end) {
  // Ranks of a host that the word has not reached yet stop with the others, as if by themselves; a
  // host that is lost once all have saved is no failure either.
  const bool have_stopped =
      end.exit_code == kTryAgain && (!cause_ || all_stopped_on_request(report));
  const auto comes_of_leaving = [&](const Cause& cause) {
    const auto host = std::ranges::find(hosts_, cause.node, &Host::node);
    return cause.blames_a_peer || (!cause.lost.empty() && host != hosts_.end() && host->is_leaving);
  };
  if (is_hastened_ && !asked_to_stop_ && (!cause_ || comes_of_leaving(*cause_)))
    return fmt::format("the ranks start again on all hosts that stay, from {}", begins_from());
  if (is_regrouping_ && !asked_to_stop_ && have_stopped)
    return fmt::format("the ranks have saved step {} and start again on all hosts that {}",
                       committed_,
                       std::ranges::any_of(hosts_, &Host::is_leaving) ? "stay" : "are there");
  const bool is_misfit = end.exit_code == static_cast<int>(ExitCode::configuration) &&
                         !worlds_.admits(world()) && user_signal_ == 0;
  if (!is_misfit || !place(free_hosts())) return "";
  return fmt::format("{} ranks do not fit the configuration; of fewer it admits {}", world(),
                     worlds_.describe());
}

/// Starts the ranks again once hosts suffice, and says what is `then` done before it is.
void Coordinator::wait_for_hosts(const std::string& then) {
  send_leaving_away();
  state_ = State::gathering;
  gathering_since_ = now_;
  const auto place = static_cast<std::ptrdiff_t>(actions_.size());
  gather();
  std::string text = then;
  if (const std::string missing = hosts_that_miss(); state_ == State::gathering && !missing.empty())
    text = fmt::format("waiting up to {} s for host {}; then: {}",
                       std::chrono::ceil<std::chrono::seconds>(settings_.rejoin).count(), missing,
                       then);
  actions_.insert(actions_.begin() + place, Announce{text});
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
    report.hang = cause_->hang;
    report.evidence = cause_->evidence;
    report.advice = cause_->advice;
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
  end.signature = report.hang ? report.hang->signature() : "host " + host.host + " is lost";
  end.done = report.hang && all_are_done(report);
  if (!report.lost_because.empty() || report.hang || !host.facts) return end;
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
  const bool is_unready = end.exit_code == static_cast<int>(ExitCode::host) ||
                          end.exit_code == static_cast<int>(ExitCode::io);
  // An earlier coordinator of the run may have known its steps.
  const bool has_begun_before = last_step_ >= 0 || (report.attempt > 0 && committed_ >= 0);
  end.is_kept_out = is_unready && rank.step < 0 && has_begun_before;
  // Any rank may be the first to tell of a cause that all share, such as bad data.
  end.signature = ending.describe() + ": " + rank.error;
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

}  // namespace strata::launcher
