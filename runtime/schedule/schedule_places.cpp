#include "runtime/schedule/schedule_places.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <utility>

#include "runtime/schedule/place_by_ejection.h"

namespace strata::runtime {
namespace {

/// An arena of up to this factor of the largest live set is good enough.
constexpr double kTight = 1.005;

/// Returns, by buffer, the first copy in the same memory.
std::vector<int> roots(const ScheduleIndex& index, const std::vector<bool>& survives) {
  std::vector<int> root(index.problem.buffers.size());
  for (int b = 0; b < index.buffers(); ++b) {
    int first = b;
    while (index.gap_before[first] != kNoGap && survives[index.gap_before[first]])
      first = index.problem.gaps[index.gap_before[first]].before;
    root[b] = first;
  }
  return root;
}

/// The memory of one tier: which roots hold it, and when.
struct Held {
  std::vector<Lifetime> lifetimes;
  std::vector<int> roots;
};

/// Finds the lifetimes of each tier, in order of roots.
std::vector<Held> find_held(const ScheduleIndex& index, const Schedule& schedule,
                            const std::vector<int>& root) {
  std::vector<Lifetime> all(index.problem.buffers.size());
  for (Lifetime& lifetime : all) lifetime.begin = kNoLimit;
  for (int b = 0; b < index.buffers(); ++b) {
    const ScheduleBuffer& buffer = index.problem.buffers[b];
    Lifetime& lifetime = all[root[b]];
    lifetime.bytes = buffer.bytes;
    for (int user : buffer.users) {
      if (schedule.start_ns[user] < 0) continue;
      lifetime.begin = std::min(lifetime.begin, schedule.start_ns[user]);
      lifetime.end = std::max(lifetime.end, schedule.end_ns[user]);
    }
    if (buffer.filled_before) lifetime.begin = 0;
    if (buffer.kept) lifetime.end = std::max(lifetime.end, schedule.makespan_ns);
    lifetime.is_placed = buffer.place_bytes != kAnyPlace;
    if (lifetime.is_placed) lifetime.offset_bytes = buffer.place_bytes;
  }
  std::vector<Held> tiers(index.problem.tiers.size());
  for (int b = 0; b < index.buffers(); ++b) {
    if (root[b] != b || all[b].bytes == 0 || all[b].begin >= all[b].end) continue;
    Held& held = tiers[index.problem.buffers[b].tier];
    held.lifetimes.push_back(all[b]);
    held.roots.push_back(b);
  }
  return tiers;
}

/// Replaces each time by the number of lifetimes that begin before it, so that problems with equal
/// overlaps compare equal.
std::vector<Lifetime> in_order(std::vector<Lifetime> lifetimes) {
  std::vector<std::int64_t> begins;
  for (const Lifetime& l : lifetimes) begins.push_back(l.begin);
  std::sort(begins.begin(), begins.end());
  for (Lifetime& l : lifetimes)
    for (std::int64_t* time : {&l.begin, &l.end})
      *time = std::lower_bound(begins.begin(), begins.end(), *time) - begins.begin();
  return lifetimes;
}

/// Lets lifetimes that are placed go where they overlap in both time and bytes with one that began
/// before.
void free_overlaps(std::vector<Lifetime>& lifetimes, std::int64_t alignment) {
  std::vector<std::pair<std::int64_t, int>> changes;  // time, lifetime; ends are ~lifetime
  for (int i = 0; i < static_cast<int>(lifetimes.size()); ++i) {
    if (!lifetimes[i].is_placed) continue;
    changes.emplace_back(lifetimes[i].begin, i);
    changes.emplace_back(lifetimes[i].end, ~i);
  }
  std::sort(changes.begin(), changes.end());
  std::map<std::int64_t, std::int64_t> held;  // bottoms and tops
  for (const auto& [time, change] : changes) {
    Lifetime& l = lifetimes[change < 0 ? ~change : change];
    if (change < 0) {
      if (l.is_placed) held.erase(l.offset_bytes);
      continue;
    }
    const std::int64_t top = l.offset_bytes + aligned(l.bytes, alignment);
    const auto above = held.lower_bound(l.offset_bytes);
    l.is_placed = (above == held.end() || above->first >= top) &&
                  (above == held.begin() || std::prev(above)->second <= l.offset_bytes);
    if (l.is_placed) held.emplace_hint(above, l.offset_bytes, top);
  }
}

/// Returns the roots if no copy survives: each buffer is its own.
std::vector<int> itself(const ScheduleIndex& index) {
  return roots(index, std::vector<bool>(index.problem.gaps.size(), false));
}

Schedule one_by_one(const ScheduleIndex& index, const std::vector<int>& sequence) {
  SimulatedRun run;
  run.start_ns.assign(sequence.size(), 0);
  run.end_ns.assign(sequence.size(), 0);
  run.survives.assign(index.problem.gaps.size(), false);
  for (int t : sequence) {
    run.start_ns[t] = run.makespan_ns;
    run.end_ns[t] = run.makespan_ns += index.problem.tasks[t].cost_ns;
  }
  return without_places(index, std::move(run));
}

/// Tells which buffer used each byte of an arena last.
class LastHolders {
 public:
  LastHolders() { stretches_[0] = kNobody; }

  /// Appends the buffers that held parts of [begin, end) to `earlier`; `buffer` gets the range.
  void take(std::int64_t begin, std::int64_t end, int buffer, std::vector<int>& earlier) {
    const auto from = split(begin), to = split(end);
    for (auto at = from; at != to; ++at)
      if (at->second != kNobody) earlier.push_back(at->second);
    stretches_.erase(std::next(from), to);
    from->second = buffer;
  }

 private:
  static constexpr int kNobody = -1;

  std::map<std::int64_t, int>::iterator split(std::int64_t at) {
    const auto around = std::prev(stretches_.upper_bound(at));  // the stretch that contains `at`
    return stretches_.try_emplace(at, around->second).first;
  }

  std::map<std::int64_t, int> stretches_;  // keyed by begin; each ends where the next begins
};

/// Returns the index with places as further needs: users of a buffer wait for earlier users of the
/// same bytes, and no copy survives.
ScheduleIndex with_places(const ScheduleIndex& index, const std::vector<int>& sequence,
                          const std::vector<std::int64_t>& offset_bytes) {
  ScheduleIndex placed = index;
  std::fill(placed.gap_of.begin(), placed.gap_of.end(), kNoGap);
  std::fill(placed.gap_before.begin(), placed.gap_before.end(), kNoGap);
  std::fill(placed.gap_after.begin(), placed.gap_after.end(), kNoGap);
  std::vector<LastHolders> holders(index.problem.tiers.size());
  std::vector<bool> seen(index.problem.buffers.size(), false);
  std::vector<int> earlier;
  for (int t : sequence)
    for (int b : index.buffers_of[t]) {
      const int tier = index.problem.buffers[b].tier;
      if (seen[b] || index.problem.tiers[tier].soft || index.held_bytes(b) == 0) continue;
      seen[b] = true;
      earlier.clear();
      const std::int64_t begin = offset_bytes[b];
      holders[tier].take(begin, begin + index.held_bytes(b), b, earlier);
      for (int other : earlier)
        for (int before : index.problem.buffers[other].users)
          for (int after : index.problem.buffers[b].users) {
            placed.needs[after].push_back(before);
            placed.needed_by[before].push_back(after);
          }
    }
  return placed;
}

}  // namespace

bool Layouts::ended_early(const Known& known, std::int64_t enough_bytes) {
  return known.arena_bytes > enough_bytes && known.arena_bytes <= known.enough_bytes;
}

std::optional<std::int64_t> Layouts::place_like_known(int tier, const Known& wanted,
                                                      std::vector<Lifetime>& lifetimes) const {
  const std::vector<Known>& all = known_[tier];
  const auto known = std::find_if(all.rbegin(), all.rend(), [&](const Known& k) {
    return k.most_held == wanted.most_held && !ended_early(k, wanted.enough_bytes);
  });
  if (known == all.rend()) return {};
  std::vector<Lifetime> placed = lifetimes;
  for (std::size_t i = 0, k = 0; i < placed.size(); ++i) {
    while (k < known->roots.size() && known->roots[k] < wanted.roots[i]) ++k;
    if (placed[i].is_placed) return {};  // which may not move
    placed[i].is_placed = k < known->roots.size() && known->roots[k] == wanted.roots[i];
    if (placed[i].is_placed) placed[i].offset_bytes = known->offset_bytes[k];
  }
  const std::int64_t alignment = index_.problem.tiers[tier].alignment;
  free_overlaps(placed, alignment);
  const std::int64_t arena_bytes =
      place_lifetimes(placed, alignment, known->arena_bytes, PlaceSearch::once);
  if (arena_bytes > known->arena_bytes) return {};
  for (std::size_t i = 0; i < placed.size(); ++i)
    lifetimes[i].offset_bytes = placed[i].offset_bytes;
  return arena_bytes;
}

std::int64_t Layouts::place(int tier, const std::vector<int>& roots, std::int64_t most_held,
                            std::int64_t enough_bytes, std::vector<Lifetime>& lifetimes) {
  Known wanted{in_order(lifetimes), roots, {}, most_held, enough_bytes, 0};
  for (const Known& known : known_[tier]) {
    if (ended_early(known, enough_bytes) || known.lifetimes != wanted.lifetimes) continue;
    for (std::size_t i = 0; i < lifetimes.size(); ++i)
      lifetimes[i].offset_bytes = known.offset_bytes[i];
    return known.arena_bytes;
  }
  if (const std::optional<std::int64_t> arena_bytes = place_like_known(tier, wanted, lifetimes))
    wanted.arena_bytes = *arena_bytes;
  else
    wanted.arena_bytes = place_lifetimes(
        lifetimes, index_.problem.tiers[tier].alignment, enough_bytes,
        index_.problem.effort == ScheduleEffort::rough ? PlaceSearch::rough : PlaceSearch::quick);
  for (const Lifetime& l : lifetimes) wanted.offset_bytes.push_back(l.offset_bytes);
  return known_[tier].emplace_back(std::move(wanted)).arena_bytes;
}

std::vector<std::int64_t> Layouts::lay_out(const std::vector<std::int64_t>& enough_bytes,
                                           Schedule& schedule) {
  const std::vector<int> root = roots(index_, schedule.survives);
  std::vector<Held> tiers = find_held(index_, schedule, root);
  std::vector<std::int64_t> most_held;
  schedule.offset_bytes.assign(root.size(), 0);
  schedule.arena_bytes.clear();
  for (int t = 0; t < index_.tiers(); ++t) {
    const ScheduleTier& limits = index_.problem.tiers[t];
    std::vector<Lifetime>& lifetimes = tiers[t].lifetimes;
    most_held.push_back(largest_held(lifetimes, limits.alignment));
    schedule.arena_bytes.push_back(
        limits.soft ? most_held.back()
                    : place(t, tiers[t].roots, most_held.back(), enough_bytes[t], lifetimes));
    if (limits.soft) continue;
    for (std::size_t i = 0; i < lifetimes.size(); ++i)
      schedule.offset_bytes[tiers[t].roots[i]] = lifetimes[i].offset_bytes;
  }
  for (std::size_t b = 0; b < root.size(); ++b)
    schedule.offset_bytes[b] = schedule.offset_bytes[root[b]];
  return most_held;
}

void tighten(const ScheduleIndex& index, Schedule& schedule) {
  const std::vector<int> root = roots(index, schedule.survives);
  std::vector<Held> tiers = find_held(index, schedule, root);
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    const ScheduleTier& limits = index.problem.tiers[t];
    std::vector<Lifetime>& lifetimes = tiers[t].lifetimes;
    const auto enough = static_cast<std::int64_t>(
        kTight * static_cast<double>(largest_held(lifetimes, limits.alignment)));
    if (limits.soft || schedule.arena_bytes[t] <= enough) continue;
    std::int64_t bytes = place_lifetimes(lifetimes, limits.alignment, 0, PlaceSearch::thorough);
    bytes = place_by_ejection(lifetimes, limits.alignment, bytes, enough);
    if (bytes >= schedule.arena_bytes[t]) continue;
    schedule.arena_bytes[t] = bytes;
    for (std::size_t i = 0; i < lifetimes.size(); ++i)
      schedule.offset_bytes[tiers[t].roots[i]] = lifetimes[i].offset_bytes;
  }
  for (std::size_t b = 0; b < root.size(); ++b)
    schedule.offset_bytes[b] = schedule.offset_bytes[root[b]];
}

Schedule without_places(const ScheduleIndex& index, SimulatedRun run) {
  Schedule schedule;
  for (int t = 0; t < index.tasks(); ++t)
    if (run.start_ns[t] >= 0) schedule.order.push_back(t);
  // Every task takes time, so a task starts after the start of all that it waits for; only ordered
  // tasks may start together, and their numbers are in their order.
  std::stable_sort(schedule.order.begin(), schedule.order.end(),
                   [&](int a, int b) { return run.start_ns[a] < run.start_ns[b]; });
  schedule.start_ns = std::move(run.start_ns);
  schedule.end_ns = std::move(run.end_ns);
  schedule.survives = std::move(run.survives);
  schedule.makespan_ns = run.makespan_ns;
  return schedule;
}

SerialRun run_serially(const ScheduleIndex& index, std::vector<int> sequence,
                       std::vector<std::int64_t> tail_ns) {
  const std::vector<Held> held = find_held(index, one_by_one(index, sequence), itself(index));
  SerialRun serial;
  for (int t = 0; t < index.tiers(); ++t)
    serial.most_held.push_back(largest_held(held[t].lifetimes, index.problem.tiers[t].alignment));
  serial.sequence = std::move(sequence);
  serial.tail_ns = std::move(tail_ns);
  return serial;
}

SerialRun run_in_places(const ScheduleIndex& index, std::vector<int> sequence) {
  SerialRun serial = run_serially(index, std::move(sequence), index.tail_ns);
  Schedule alone = one_by_one(index, serial.sequence);
  Layouts(index).lay_out(std::vector<std::int64_t>(index.problem.tiers.size(), 0), alone);
  std::vector<std::int64_t> budget;
  for (int t = 0; t < index.tiers(); ++t) {
    const ScheduleTier& tier = index.problem.tiers[t];
    budget.push_back(tier.soft ? std::max(tier.budget_bytes, serial.most_held[t]) : kNoLimit);
  }
  const ScheduleIndex placed = with_places(index, serial.sequence, alone.offset_bytes);
  serial.schedule =
      without_places(index, simulate(placed, serial.tail_ns, serial.sequence, budget));
  const std::vector<Held> held = find_held(index, serial.schedule, itself(index));
  serial.schedule.offset_bytes = std::move(alone.offset_bytes);
  serial.schedule.arena_bytes = std::move(alone.arena_bytes);
  for (int t = 0; t < index.tiers(); ++t)
    if (index.problem.tiers[t].soft)
      serial.schedule.arena_bytes[t] =
          largest_held(held[t].lifetimes, index.problem.tiers[t].alignment);
  return serial;
}

bool fits(const ScheduleIndex& index, const Schedule& schedule,
          const std::vector<std::int64_t>& budget_bytes) {
  for (std::size_t t = 0; t < schedule.arena_bytes.size(); ++t)
    if (!index.problem.tiers[t].soft && schedule.arena_bytes[t] > budget_bytes[t]) return false;
  return !schedule.order.empty();
}

}  // namespace strata::runtime
