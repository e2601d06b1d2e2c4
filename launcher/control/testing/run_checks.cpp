#include "launcher/control/testing/run_checks.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace strata::launcher::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A host that was in no trouble for so long has an agent that the coordinator knows.
constexpr seconds kSettled{10};
/// Ranks are gone so long after their host was cut off, or the coordinator went.
constexpr seconds kRanksEnd{12};
constexpr seconds kRejoin = std::chrono::ceil<seconds>(Coordinator::Settings{}.rejoin);

}  // namespace

RunChecks::RunChecks(const EventQueue& queue, const Scenario& scenario, const SharedDisk& disk)
    : queue_(queue),
      scenario_(scenario),
      disk_(disk),
      rules_(scenario.limits),
      trouble_until_(scenario.slots.size()) {}

void RunChecks::note_trouble(int host, Time end) {
  Time& until = trouble_until_.at(index(host));
  until = std::max({until, end, queue_.now()});
  const bool ends = end < queue_.now() + kForever / 2;
  last_trouble_ = std::max(last_trouble_, ends ? end : queue_.now());
}

void RunChecks::note_user_signal(int number) {
  ++signals_;
  last_trouble_ = std::max(last_trouble_, queue_.now());
  if (number == SIGUSR1)
    is_warned_ = true;
  else
    user_signal_ = number;
}

/// Where others suffice, the run goes on without the host, once ranks know how to stop.
void RunChecks::note_signal_of_host(int number, bool is_running, const std::vector<int>& others) {
  ++signals_;
  last_trouble_ = std::max(last_trouble_, queue_.now());
  may_leave_ = true;
  may_stop_ |= number != SIGTERM || !suffice(others) || (is_running && !worlds_told_);
}

/// True if a run can go on with hosts of these slots.
bool RunChecks::suffice(const std::vector<int>& slots) const {
  int world = std::accumulate(slots.begin(), slots.end(), 0);
  while (world > 0 && !scenario_.fits(world)) --world;
  return std::ssize(slots) >= scenario_.least_hosts && world >= scenario_.least_hosts;
}

void RunChecks::note_coordinator_begins(int number) {
  coordinator_ = number;
  of_before_ = std::ssize(starts_);
  coordinator_lost_ = false;
  rules_ = RestartRules(scenario_.limits);
  no_restart_.reset();
  worlds_told_ = is_warned_ = may_leave_ = may_stop_ = knows_earlier_ = false;
  user_signal_ = 0;
  waits_for_lost_.reset();
  dismissed_.clear();
  gathering_since_ = queue_.now();
}

void RunChecks::on_start_of_ranks(StartId id) const {
  if (has_ended()) throw CheckFailed("end", "ranks start after the end of the run");
  if (id > newest()) throw CheckFailed("start", "ranks start of an attempt that nobody began");
}

void RunChecks::on_commit(StartId id, std::int64_t step) const {
  if (id != newest() && !(is_another_run() && id == locked_))
    throw CheckFailed("two writers", fmt::format("attempt {} commits, and attempt {} has begun",
                                                 id.attempt, newest().attempt));
  if (step < disk_.newest)
    throw CheckFailed("regress",
                      fmt::format("a commit of step {} after one of step {}", step, disk_.newest));
}

void RunChecks::on_signal_of_ranks(int times) {
  if (times > signals_ + std::ssize(grows_))
    throw CheckFailed("signal",
                      fmt::format("ranks got {} signals, and the user sent {}", times, signals_));
}

/// True if a new coordinator was told of no earlier attempt, since all agents that have come are
/// new as well: for it this is another run, and the lock of the output folder alone keeps ranks
/// apart.
bool RunChecks::is_another_run() const {
  const bool has_begun = newest().coordinator == coordinator_;
  return coordinator_ > 0 && (has_begun ? newest().attempt == 0 : !knows_earlier_);
}

void RunChecks::on_living(const std::set<StartId>& attempts) const {
  if (is_another_run()) return;
  if (attempts.size() > 1) throw CheckFailed("two attempts", "two attempts have living ranks");
  if (!attempts.empty() && *attempts.begin() != newest())
    throw CheckFailed("two attempts", fmt::format("attempt {} has living ranks, and {} has begun",
                                                  attempts.begin()->attempt, newest().attempt));
  if (has_ended() && !attempts.empty())
    throw CheckFailed("end", "ranks live after the end of the run");
}

void RunChecks::on_actions(const std::vector<ControlAction>& actions,
                           const std::vector<int>& available) {
  bool reported = false;
  for (const ControlAction& action : actions) {
    if (has_ended()) throw CheckFailed("end", "the coordinator acts after the end of the run");
    if (const auto* send = std::get_if<SendToAgent>(&action)) on_message(*send);
    if (const auto* tell = std::get_if<TellReport>(&action)) {
      if (std::exchange(reported, true)) throw CheckFailed("report", "two reports at once");
      on_report(tell->report);
    }
    if (const auto* end = std::get_if<EndRun>(&action)) on_end(end->exit_code, reported, available);
  }
}

void RunChecks::on_message(const SendToAgent& send) {
  const bool dismisses = std::holds_alternative<Dismiss>(send.message);
  if (!dismisses && dismissed_.contains(send.host + send.agent))
    throw CheckFailed("dismiss", "a message to " + send.host + " after it was dismissed");
  if (dismisses) dismissed_.insert(send.host + send.agent);
  if (const auto* signal = std::get_if<ForwardSignal>(&send.message)) on_signal_to_ranks(*signal);
  if (const auto* start = std::get_if<StartAttempt>(&send.message)) on_start(*start);
}

void RunChecks::on_start(const StartAttempt& start) {
  const StartId id{coordinator_, start.placement.attempt};
  if (id == newest() && start.placement == starts_.back().placement) return;
  // One that has taken up the run may hear later of an attempt of the coordinator before.
  const bool is_next = newest().coordinator < coordinator_ || coordinator_ > 0
                           ? id > newest()
                           : id.attempt == newest().attempt + 1;
  if (!is_next)
    throw CheckFailed("start",
                      fmt::format("attempt {} is out of order, or has changed", id.attempt));
  on_new_attempt();
  const bool waits_long = start.lock_wait == kLostHostsLock;
  if (waits_for_lost_ && *waits_for_lost_ != waits_long)
    throw CheckFailed("lock", fmt::format("ranks wait {} s for the lock, and {} host was lost",
                                          start.lock_wait.count(), *waits_for_lost_ ? "a" : "no"));
  waits_for_lost_.reset();  // until it is reported how the attempt ended
  if (start.placement.hosts() < scenario_.least_hosts)
    throw CheckFailed("start", "ranks start on fewer hosts than the run needs");
  starts_.push_back({id, start.placement, queue_.now()});
  if (scenario_.fits(start.placement.world())) return;
  if (worlds_told_) throw CheckFailed("worlds", "ranks start that do not fit");
  misfits_.insert(id);
}

/// A signal that the user did not send asks the ranks to save and stop, for hosts that have come.
void RunChecks::on_signal_to_ranks(const ForwardSignal& signal) {
  if (is_warned_ || signal.number != SIGUSR1) return;
  if (may_leave_) {
    grows_.insert({coordinator_, signal.attempt});
    return;
  }
  if (scenario_.worlds.empty() || disk_.newest < 0 ||
      starts_.back().placement.world() >= most_ranks())
    throw CheckFailed("grow", "ranks are to stop, and no more could start");
  grows_.insert({coordinator_, signal.attempt});
}

/// The most ranks that all hosts together can hold.
int RunChecks::most_ranks() const {
  int world = std::accumulate(scenario_.slots.begin(), scenario_.slots.end(), 0);
  while (!scenario_.fits(world)) --world;
  return world;
}

/// Counts the attempts of the coordinator after which another one is no restart.
std::ptrdiff_t RunChecks::regroupings_of_coordinator() const {
  const auto is_its_own = [this](StartId id) { return id.coordinator == coordinator_; };
  return std::ranges::count_if(grows_, is_its_own) + std::ranges::count_if(misfits_, is_its_own);
}

void RunChecks::on_new_attempt() const {
  if (user_signal_ != 0) throw CheckFailed("restart", "the run starts again after a signal");
  if (no_restart_) throw CheckFailed("restart", "the run starts again: " + *no_restart_);
  const auto restarts = std::ssize(starts_) - of_before_ - regroupings_of_coordinator();
  if (restarts > scenario_.limits.most_restarts)
    throw CheckFailed("restart", "the run starts again more often than is allowed");
  if (restarts > 0 && disk_.newest < 0 && !scenario_.limits.without_commit)
    throw CheckFailed("restart", "the run starts again and has committed nothing");
}

/// The culprit that a report names has failed in that attempt.
void RunChecks::on_report(const AttemptReport& report) {
  gathering_since_ = queue_.now();
  no_restart_ = rules_.after(report);
  if (user_signal_ != 0 && report.is_started_again)
    throw CheckFailed("restart", "the run is to start again after a signal");
  judge_lock_wait(report);
  if (StartId{coordinator_, report.attempt} != newest())
    throw CheckFailed("report", "it is about another attempt");
  all_told_ = std::ranges::all_of(
      report.hosts, [](const AttemptReport::OfHost& host) { return host.facts.has_value(); });
  all_stopped_ = std::ranges::all_of(report.hosts, [](const AttemptReport::OfHost& host) {
    return host.facts && host.facts->all_stopped;
  });
  // Ranks that stopped because they were asked to are reported, too; nobody is to blame.
  const bool nobody_failed =
      all_told_ && std::ranges::all_of(report.hosts, [](const AttemptReport::OfHost& host) {
        return host.facts->was_asked;
      });
  if ((is_warned_ || may_stop_) && nobody_failed) return;
  const auto& host = report.hosts.at(index(report.failed_host));
  const int ranks = starts_.back().placement.ranks_of(report.failed_host);
  if (report.hang) {
    check_hang(report);
  } else if (!report.lost_because.empty()) {
    if (!may_be_lost(number_of(host.host)))
      throw CheckFailed(
          "culprit", fmt::format("{} was in no trouble, but: {}", host.host, report.lost_because));
  } else if (user_signal_ == 0 && !may_stop_ && !has_failed(host, ranks) &&
             !is_stopped_after_save()) {
    throw CheckFailed("culprit", "no rank of " + host.host + " failed by itself");
  }
}

/// What HangWatch made of the states of ranks is what has happened to them.
void RunChecks::check_hang(const AttemptReport& report) const {
  const Hang& hang = *report.hang;
  const int rank = hang.rank;
  if (starts_.back().placement.host_of(rank) != report.failed_host)
    throw CheckFailed("culprit", fmt::format("rank {} is on another host", rank));
  const bool is_network = hang.kind == Hang::Kind::in_it;
  // A message that comes late in its stream may leave a word of a failure behind: then all wait, or
  // who is left gets nothing done.
  const bool may_be_in_order = scenario_.network.reordered_percent == 0;
  if (is_network && !network_hangs_.contains(newest()) && may_be_in_order)
    throw CheckFailed("culprit", "the network is blamed, and carries all");
  if (is_network || (hang.kind == Hang::Kind::alone && !may_be_in_order)) return;
  const bool is_stopped = stopped_ranks_.contains({newest(), rank});
  if (!is_stopped && !hung_ranks_.contains({newest(), rank}))
    throw CheckFailed("culprit", fmt::format("rank {} does not hang", rank));
  // A rank that ran between its stops before this one is found out to be stopped after 5 s, and a
  // standstill may be found before.
  const bool may_be_either = is_stopped && slowed_ranks_.contains({newest(), rank});
  if (!may_be_either && is_stopped != (hang.kind == Hang::Kind::held))
    throw CheckFailed("culprit", "the cause is another: " + hang.describe());
}

/// Once ranks have made a step they had the lock, so that nobody else has it any more.
void RunChecks::judge_lock_wait(const AttemptReport& report) {
  const bool is_lost = !report.lost_because.empty() || rules_.was_kept_out();
  const bool had_lock = std::ranges::any_of(report.hosts, [](const AttemptReport::OfHost& host) {
    return host.facts && std::ranges::any_of(host.facts->ranks,
                                             [](const EndedRank& rank) { return rank.step >= 0; });
  });
  if (is_lost || had_lock) waits_for_lost_ = is_lost;
}

bool RunChecks::may_be_lost(int host) const {
  // What is overtaken comes too late: a lease can end for want of several heartbeats in a row.
  if (scenario_.network.reordered_percent > 0) return true;
  return well_since(host) + kSettled >= starts_.back().began;
}

/// True if no rank of the attempt failed by itself, and one was stopped. Where that happens once
/// all have saved, it is killed, and nobody tells of one to blame.
bool RunChecks::is_stopped_after_save() const {
  const auto is_of_attempt = [this](const auto& rank) { return rank.first == newest(); };
  return std::ranges::none_of(failed_ranks_, is_of_attempt) &&
         std::ranges::any_of(stopped_ranks_, is_of_attempt);
}

bool RunChecks::has_failed(const AttemptReport::OfHost& host, int ranks) const {
  // What overtakes in a stream may cost words that name the culprit, never more.
  if (scenario_.network.reordered_percent > 0 && !all_told_) return true;
  for (int rank = host.first_rank; rank < host.first_rank + ranks; ++rank)
    if (failed_ranks_.contains({newest(), rank})) return true;
  return false;
}

int RunChecks::number_of(const std::string& host) const { return std::stoi(host.substr(4)); }

void RunChecks::on_end(int exit_code, bool after_report, const std::vector<int>& available) {
  exit_code_ = exit_code;
  if (exit_code == 0) {
    if (disk_.newest != scenario_.steps)
      throw CheckFailed("end", fmt::format("the run ends with 0 after step {} of {}", disk_.newest,
                                           scenario_.steps));
    return;
  }
  if (user_signal_ != 0 || is_warned_ || may_stop_) return;
  if (after_report && grows_.contains(newest()) && all_stopped_)
    throw CheckFailed("grow", "ranks have stopped to start again as more, and the run ends");
  if (after_report && no_restart_) return;
  if (!suffice(scenario_.slots)) return;  // nothing fits what rank 0 admits
  explain_end(exit_code, available);
}

/// Without a signal, or a rule that says so, a run ends only if hosts are missing for long.
void RunChecks::explain_end(int exit_code, const std::vector<int>& available) const {
  if (suffice(available))
    throw CheckFailed("gives up", fmt::format("the run ends with {}, but {} hosts are there and "
                                              "restarts are left",
                                              exit_code, available.size()));
  if (queue_.now() - gathering_since_ < kRejoin * 9 / 10)
    throw CheckFailed("gives up", "the run did not wait for hosts");
}

void RunChecks::on_time(bool any_rank_lives) const {
  if (is_over() && !any_rank_lives) return;
  const Duration since = queue_.now() - last_trouble_;
  if (is_over()) {
    if (since > kRanksEnd) throw CheckFailed("bounded", "ranks live long after the run");
    return;
  }
  const Duration ending = seconds(30);
  const Duration attempt = scenario_.step_time * (scenario_.steps + 5) + ending;
  const auto others = std::ssize(grows_) + std::ssize(misfits_);
  const Duration run = attempt * (scenario_.limits.most_restarts + 1 + others);
  const bool is_asked = user_signal_ != 0;
  if (since > (is_asked ? attempt - scenario_.step_time * scenario_.steps : run + kRejoin * 2))
    throw CheckFailed("bounded", is_asked ? "the run does not end though the user ended it"
                                          : "the run does not end");
}

}  // namespace strata::launcher::simulation
