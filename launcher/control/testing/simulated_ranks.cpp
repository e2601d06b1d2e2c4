#include "launcher/control/testing/simulated_ranks.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/shared_values.h"

namespace strata::launcher::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kPeersEnd{1000};  ///< ranks whose peer failed have ended by themselves
constexpr seconds kKilled{5};            ///< ranks that did not are killed
constexpr milliseconds kFreed{2000};     ///< memory of a killed process, and with it its lock
constexpr seconds kGrace{10};            ///< that ranks have to stop after SIGTERM
constexpr int kTryAgain = static_cast<int>(ExitCode::try_again);
constexpr Ending kBlamesAPeer{Ending::Kind::exited, kTryAgain};
constexpr Ending kKill{Ending::Kind::killed, SIGKILL};

}  // namespace

bool Group::lives() const { return std::ranges::any_of(ranks, &Rank::lives); }

SimulatedRanks::SimulatedRanks(EventQueue& queue, Draws& draws, Trace& trace,
                               const Scenario& scenario, SharedDisk& disk, RunChecks& checks)
    : queue_(queue),
      draws_(draws),
      trace_(trace),
      scenario_(scenario),
      disk_(disk),
      checks_(checks) {}

Group& SimulatedRanks::start(GroupOwner& owner, SimulatedHost& host, int coordinator,
                             const StartAttempt& start, bool needs_lease) {
  const Placement& placement = start.placement;
  const StartId id{coordinator, placement.attempt};
  checks_.on_start_of_ranks(id);
  Group& group = groups_.emplace_back();
  group.id = id;
  group.node = start.node;
  group.host = &host;
  group.owner = &owner;
  group.needs_lease = needs_lease;
  for (int i = 0; i < placement.ranks_of(start.node); ++i)
    group.ranks.push_back({.number = placement.first_rank(start.node) + i});
  group.meeting = Meeting(placement.attempt, start.node, placement.hosts());
  living_.push_back(&group);
  Training& training = trainings_[id];
  training.placement = placement;
  training.lock_wait = start.lock_wait;
  training.groups.resize(static_cast<std::size_t>(placement.hosts()));
  training.groups[static_cast<std::size_t>(start.node)] = &group;
  if (const auto& failing = scenario_.failing;
      failing && failing->step < 0 && placement.attempt < failing->attempts)
    for (std::size_t i = 0; i < group.ranks.size(); ++i)
      if (group.ranks[i].number == failing->rank)
        host.after(draw(milliseconds(300)), [this, &group, i] { fail_in_spawn(group, i); });
  host.after(draws_.between(milliseconds(200), milliseconds(1000)),
             [this, &group] { meet(group); });
  return group;
}

void SimulatedRanks::meet(Group& group) {
  for (const ValueRequest& request : group.meeting.begin())
    if (group.lives() && group.owner != nullptr) group.owner->rank_asks(request);
}

/// Ranks begin once those of each host know where the others are.
void SimulatedRanks::answer(Group& group, const ValueAnswer& answer) {
  group.meeting.take(answer);
  if (group.meeting.has_failed()) return end(group);
  const auto& groups = training_of(group).groups;
  if (std::ranges::all_of(groups, [](const Group* one) { return one && one->meeting.is_over(); }))
    queue_.after(draw(milliseconds(100)), [this, id = group.id] { begin(id); });
}

void SimulatedRanks::begin(StartId id) {
  Training& training = trainings_.at(id);
  if (std::exchange(training.begun, true)) return;
  training.gives_up = queue_.now() + training.lock_wait;
  take_lock(id);
}

bool SimulatedRanks::is_locked_by_others(StartId id) const {
  return queue_.now() < disk_.locked_until || std::ranges::any_of(living_, [&](const Group* group) {
           return group->id != id && trainings_.at(group->id).locked;
         });
}

/// Rank 0 takes the lock of the output folder for all ranks, and beats while it waits for it.
void SimulatedRanks::take_lock(StartId id) {
  Training& training = trainings_.at(id);
  Group& group = *training.groups[0];
  if (!group.ranks[0].lives || group.ranks[0].hangs()) return;
  if (is_locked_by_others(id)) {
    if (queue_.now() >= training.gives_up)
      return fail(group, 0, {Ending::Kind::exited, static_cast<int>(ExitCode::host)}, false);
    ++group.ranks[0].beats;
    return group.host->after(milliseconds(500), [this, id] { take_lock(id); });
  }
  training.locked = true;
  checks_.note_lock_taken(id);
  for (Group* one : training.groups)
    for (Group::Rank& rank : one->ranks) {
      rank.phase = Phase::forward;
      ++rank.beats;
    }
  training.step = std::max<std::int64_t>(disk_.newest, 0);
  if (!scenario_.worlds.empty()) say_worlds(id);
  make_step(id);
}

/// Rank 0 says how many ranks the run may have, and fails if it is one of too many.
void SimulatedRanks::say_worlds(StartId id) {
  Training& training = trainings_.at(id);
  Group& group = *training.groups[0];
  const std::string words = fmt::format("{}", fmt::join(scenario_.worlds, " "));
  if (group.ranks[0].lives && group.owner != nullptr)
    group.owner->rank_asks(group.meeting.put(kWorldsKey, words));
  if (scenario_.fits(training.placement.world())) return;
  training.stopping = true;  // no rank begins a step
  constexpr int kMisfit = static_cast<int>(ExitCode::configuration);
  group.host->after(seconds(1), [this, &group] {
    fail(group, 0, {Ending::Kind::exited, kMisfit}, false);
  });
}

void SimulatedRanks::make_step(StartId id) {
  Training& training = trainings_.at(id);
  if (std::ranges::none_of(training.groups, [](const Group* group) { return group->lives(); }))
    return;
  queue_.after(scenario_.step_time, [this, id] { make_step(id); });
  if (training.stopping) return;
  if (!can_step(training)) return wait_for_others(training);
  if (training.step < scenario_.steps) ++training.step;
  training.collectives += 2;
  for (Group* group : training.groups) {
    group->committed = disk_.newest;
    for (Group::Rank& rank : group->ranks) {
      rank.step = training.step;
      ++rank.beats;
      rank.collective = training.collectives;
      rank.collective_name.clear();
    }
  }
  if (fail_as_drawn(training) != nullptr) return;
  training.stopping = training.step == scenario_.steps || training.asked_to_stop;
  if (training.stopping || training.step % scenario_.commit_every == 0) save(id);
}

/// Returns the group in which a rank failed; nullptr: none was drawn to fail now.
Group* SimulatedRanks::fail_as_drawn(Training& training) {
  const auto& failing = scenario_.failing;
  if (!failing || training.placement.attempt >= failing->attempts || training.step != failing->step)
    return nullptr;
  for (Group* group : training.groups)
    for (std::size_t i = 0; i < group->ranks.size(); ++i) {
      if (group->ranks[i].number != failing->rank) continue;
      const bool out_of_memory = failing->way == FailingRank::Way::is_out_of_memory;
      group->out_of_memory_kills += out_of_memory ? 1 : 0;
      fail(*group, i, out_of_memory ? kKill : Ending{Ending::Kind::exited, failing->exit_code},
           false);
      return group;
    }
  return nullptr;
}

void SimulatedRanks::save(StartId id) {
  Training& training = trainings_.at(id);
  if (training.saving && !training.stopping) return;
  training.saving = true;
  training.groups[0]->host->after(draw(milliseconds(300)),
                                  [this, id, step = training.step] { commit(id, step); });
}

/// Rank 0 looks at its lease right before the renames that make a checkpoint count.
void SimulatedRanks::commit(StartId id, std::int64_t step) {
  Training& training = trainings_.at(id);
  Group& group = *training.groups[0];
  if (!group.ranks[0].lives || group.ranks[0].hangs()) return;
  if (training.stopping && step != training.step) return;  // the last one is under way, too
  if (group.needs_lease && group.host->local_time() >= group.lease_end) {
    group.host->after(milliseconds(200), [this, id, step] { commit(id, step); });
    return;
  }
  if (queue_.now() < disk_.full_until)
    return fail(group, 0, {Ending::Kind::exited, static_cast<int>(ExitCode::io)}, false);
  checks_.on_commit(id, step);
  trace_.note([&] { return fmt::format("attempt {} commits step {}", id.attempt, step); });
  disk_.newest = step;
  group.committed = step;
  training.saving = false;
  if (training.stopping) exit_well(training);
}

void SimulatedRanks::exit_well(Training& training) {
  const int code = training.step == scenario_.steps ? 0 : kTryAgain;
  for (Group* group : training.groups) {
    if (!group->lives()) continue;
    group->committed = disk_.newest;
    group->stopped_as_asked = true;
    for (std::size_t i = 0; i < group->ranks.size(); ++i)
      group->host->after(draw(milliseconds(200)), [this, group, i, code] {
        if (group->ranks[i].hangs()) return;
        tell_of_stop(*group, i, code);
        end_rank(*group, i, {Ending::Kind::exited, code});
      });
  }
}

/// To an agent that no signal has reached, a rank that stops looks like one that blames a peer.
void SimulatedRanks::tell_of_stop(const Group& group, std::size_t rank, int code) const {
  if (code != kTryAgain || group.signals != 0 || group.owner == nullptr || !group.ranks[rank].lives)
    return;
  const int number = group.ranks[rank].number;
  group.owner->rank_failed(
      {group.id.attempt, number, fmt::format("rank {} exited with code {}", number, code), true});
}

void SimulatedRanks::fail_in_spawn(Group& group, std::size_t rank) {
  if (!group.ranks[rank].lives) return;
  const FailingRank& failing = scenario_.failing.value();
  if (failing.way != FailingRank::Way::cannot_start)
    return fail(group, rank, {Ending::Kind::exited, failing.exit_code}, false);
  group.spawn_error = "no such program";
  fail(group, rank, {Ending::Kind::exited, static_cast<int>(ExitCode::host)}, false);
}

/// A rank ends by itself. The cause of the group is the first failure; but a rank that only blames
/// a peer gives way to one that does not.
void SimulatedRanks::fail(Group& group, std::size_t rank, Ending ending, bool blames_a_peer) {
  if (!group.ranks[rank].lives) return;
  const int number = group.ranks[rank].number;
  if (!blames_a_peer) checks_.note_failed_rank(group.id, number);
  if (!group.failed || (group.blames_a_peer && !blames_a_peer)) {
    group.failed = rank;
    group.blames_a_peer = blames_a_peer;
    group.host->after(draw(milliseconds(10)), [&group, blames_a_peer, number, ending] {
      if (group.owner != nullptr)
        group.owner->rank_failed({group.id.attempt, number,
                                  fmt::format("rank {} {}", number, ending.describe()),
                                  blames_a_peer});
    });
  }
  end_rank(group, rank, ending);
  tell_peers(group);
  if (!group.is_ending) end_by_themselves(group);
}

void SimulatedRanks::end_by_themselves(Group& group) {
  group.is_ending = true;
  for (std::size_t i = 0; i < group.ranks.size(); ++i)
    group.host->after(draw(kPeersEnd), [this, &group, i] {
      if (!group.ranks[i].hangs() && !group.stopped_as_asked) fail(group, i, kBlamesAPeer, true);
    });
  kill_after(group, kKilled);
}

void SimulatedRanks::kill_after(Group& group, Duration delay) {
  group.host->after(delay, [this, &group] {
    for (std::size_t i = 0; i < group.ranks.size(); ++i) end_rank(group, i, kKill);
  });
}

/// Ranks on other hosts may see that a connection to a rank of the group has closed.
void SimulatedRanks::tell_peers(const Group& group) {
  for (Group* other : training_of(group).groups) {
    if (other == nullptr || other == &group || other->is_ending || !draws_.chance(70)) continue;
    other->host->after(draws_.between(milliseconds(5), milliseconds(2000)), [this, other] {
      const auto lives = std::ranges::find_if(
          other->ranks, [](const Group::Rank& rank) { return rank.lives && !rank.hangs(); });
      if (other->is_ending || other->stopped_as_asked || lives == other->ranks.end()) return;
      fail(*other, static_cast<std::size_t>(lives - other->ranks.begin()), kBlamesAPeer, true);
    });
  }
}

void SimulatedRanks::end_rank(Group& group, std::size_t rank, Ending ending) {
  if (!group.ranks[rank].lives) return;
  trace_.note([&] {
    return fmt::format("rank {} of attempt {} on {} {}", group.ranks[rank].number, group.id.attempt,
                       group.host->name(), ending.describe());
  });
  group.ranks[rank].lives = false;
  group.ranks[rank].ending = ending;
  if (ending == kKill && training_of(group).locked)
    disk_.locked_until = std::max(disk_.locked_until, queue_.now() + draw(kFreed));
  settle(group);
}

void SimulatedRanks::settle(Group& group) {
  if (group.is_over || group.lives()) return;
  group.is_over = true;
  std::erase(living_, &group);
  group.host->after(draw(milliseconds(50)), [this, &group] {
    if (group.owner != nullptr) group.owner->group_ended(facts(group));
  });
}

AttemptFacts SimulatedRanks::facts(const Group& group) const {
  AttemptFacts facts;
  const bool all_exited = std::ranges::none_of(
      group.ranks, [](const Group::Rank& rank) { return rank.ending.number == SIGKILL; });
  const bool stopped = group.stopped_as_asked && all_exited;
  facts.was_asked = (stopped || group.signal != 0) && (!group.failed || group.blames_a_peer);
  facts.all_stopped = stopped && std::ranges::all_of(group.ranks, [](const Group::Rank& rank) {
                        return rank.ending == kBlamesAPeer;
                      });
  if (group.failed) {
    const int number = group.ranks[*group.failed].number;
    facts.failed = AttemptFacts::Failed{number, group.spawn_error, ""};
    facts.exit_code = group.ranks[*group.failed].ending.exit_code();
  } else if (stopped) {
    facts.exit_code = group.ranks[0].ending.exit_code();
  } else {
    constexpr int kSignalBase = static_cast<int>(ExitCode::signal_base);
    facts.exit_code = group.signal == 0 ? kTryAgain : kSignalBase + group.signal;
  }
  for (const Group::Rank& rank : group.ranks)
    facts.ranks.push_back({.ending = rank.ending, .step = rank.step});
  facts.out_of_memory_kills = group.out_of_memory_kills;
  facts.committed = group.committed;
  facts.checkpoint = fmt::format("step-{}", group.committed);
  return facts;
}

void SimulatedRanks::end(Group& group) {
  if (group.lives() && !group.is_ending) end_by_themselves(group);
}

void SimulatedRanks::signal(Group& group, int number) {
  if (!group.lives()) return;
  checks_.on_signal_of_ranks(++group.signals);
  const bool again = group.signal != 0 && number == SIGTERM;
  if (number != SIGUSR1 && group.signal == 0) group.signal = number;
  Training& training = training_of(group);
  if (number == SIGINT || again) {
    group.is_ending = true;
    for (std::size_t i = 0; i < group.ranks.size(); ++i)
      group.host->after(draw(kPeersEnd), [this, &group, i, number] {
        if (!group.ranks[i].hangs()) end_rank(group, i, {Ending::Kind::killed, number});
      });
    kill_after(group, kKilled);
    return tell_peers(group);
  }
  training.asked_to_stop = true;
  if (number == SIGTERM) kill_after(group, kGrace);
}

void SimulatedRanks::kill(Group& group) {
  if (!group.lives()) return;
  tell_peers(group);
  group.is_ending = true;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) end_rank(group, i, kKill);
}

void SimulatedRanks::lose(Group& group, bool peers_notice) {
  group.owner = nullptr;
  if (group.is_over) return;
  if (peers_notice)
    tell_peers(group);
  else if (training_of(group).locked)
    disk_.locked_until = std::max(disk_.locked_until, queue_.now() + scenario_.lost_lock);
  group.is_ending = true;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) end_rank(group, i, kKill);
}

std::set<StartId> SimulatedRanks::attempts_alive() const {
  std::set<StartId> attempts;
  for (const Group* group : living_)
    if (group->host->runs()) attempts.insert(group->id);
  return attempts;
}

}  // namespace strata::launcher::simulation
