// The part of SimulatedRanks in which ranks crash or hang, and what is seen of it from outside.
#include <signal.h>

#include <algorithm>

#include "launcher/control/testing/simulated_ranks.h"

namespace strata::launcher::simulation {
namespace {

constexpr Ending kKill{Ending::Kind::killed, SIGKILL};

/// A process that runs leaves its core all the time.
std::uint64_t switches_at(Time time) {
  return static_cast<std::uint64_t>(time.time_since_epoch() / std::chrono::milliseconds(10));
}

}  // namespace

std::optional<std::pair<Group*, std::size_t>> SimulatedRanks::draw_rank() {
  std::vector<std::pair<Group*, std::size_t>> candidates;
  for (Group* group : living_)
    for (std::size_t i = 0; i < group->ranks.size(); ++i)
      if (group->ranks[i].lives && group->host->runs()) candidates.emplace_back(group, i);
  if (candidates.empty()) return {};
  return draws_.one_of(candidates);
}

bool SimulatedRanks::crash_one(bool out_of_memory) {
  const auto rank = draw_rank();
  if (!rank) return false;
  auto& [group, index] = *rank;
  group->out_of_memory_kills += out_of_memory ? 1 : 0;
  fail(*group, index, out_of_memory ? kKill : Ending{Ending::Kind::killed, SIGSEGV}, false);
  return true;
}

/// Ranks that do not work together yet, that end, or that wait in a collective are only stopped:
/// others wait in no collective for one that gets nothing done.
bool SimulatedRanks::hang_one() {
  const auto drawn = draw_rank();
  if (!drawn) return false;
  auto& [group, index] = *drawn;
  Group::Rank& rank = group->ranks[index];
  if (rank.hangs()) return false;
  Training& training = training_of(*group);
  const int world = training.placement.world();
  const bool work =
      training.locked && !training.stopping && !any_hangs(training) && rank.collective_name.empty();
  if (work && world > 1 && draws_.chance(20)) {
    training.network_hangs = true;
    checks_.note_network_hangs(group->id);
    return true;
  }
  if (!work || draws_.chance(40))
    stop(rank);
  else
    rank.hold = world > 2 && draws_.chance(40) ? Group::Hold::in_another : Group::Hold::behind;
  checks_.note_hung_rank(group->id, rank.number, rank.hold == Group::Hold::stopped,
                         rank.slowed_until != Time());
  return true;
}

/// As cpulimit does it.
void SimulatedRanks::slow_one(Duration lasts) {
  if (const auto rank = draw_rank())
    rank->first->ranks[rank->second].slowed_until = queue_.now() + lasts;
}

void SimulatedRanks::stop(Group::Rank& rank) {
  rank.hold = Group::Hold::stopped;
  rank.stopped_at = queue_.now();
}

bool SimulatedRanks::any_hangs(const Training& training) {
  return training.network_hangs || std::ranges::any_of(training.groups, [](const Group* group) {
           return std::ranges::any_of(group->ranks, &Group::Rank::hangs);
         });
}

bool SimulatedRanks::can_step(const Training& training) const {
  return !training.network_hangs &&
         std::ranges::all_of(training.groups, [this](const Group* group) {
           return group->host->runs() && !is_unread(*group) &&
                  std::ranges::all_of(group->ranks, [](const Group::Rank& rank) {
                    return rank.lives && !rank.hangs();
                  });
         });
}

/// Ranks that can come to the next collective, and wait there.
void SimulatedRanks::wait_for_others(Training& training) {
  for (Group* group : training.groups) {
    if (!group->host->runs() || is_unread(*group)) continue;
    for (Group::Rank& rank : group->ranks) {
      const bool comes = rank.hold == Group::Hold::none || rank.hold == Group::Hold::in_another;
      if (!rank.lives || !comes || !rank.collective_name.empty()) continue;
      rank.collective = training.collectives + 1;
      rank.collective_name = rank.hangs() ? "all_gather" : "reduce_scatter";
      ++rank.beats;
    }
  }
}

void SimulatedRanks::leave_unread(const SimulatedHost& host, Duration lasts) {
  Time& until = unread_until_[&host];
  until = std::max(until, queue_.now() + lasts);
}

bool SimulatedRanks::is_unread(const Group& group) const {
  const auto found = unread_until_.find(group.host);
  return found != unread_until_.end() && queue_.now() < found->second;
}

std::vector<RankState> SimulatedRanks::look(const Group& group) const {
  const Time now = queue_.now();
  std::vector<RankState> states;
  for (const Group::Rank& rank : group.ranks)
    states.push_back({.rank = rank.number,
                      .phase = rank.phase,
                      .step = rank.step,
                      .beats = rank.beats,
                      .collective = rank.collective,
                      .collective_name = rank.collective_name,
                      .committed = group.committed,
                      .ended = !rank.lives,
                      .held = rank.hold == Group::Hold::stopped || now < rank.slowed_until,
                      .switches = switches_at(std::min(now, rank.stopped_at)),
                      .unread = is_unread(group)});
  return states;
}

}  // namespace strata::launcher::simulation
