#include "runtime/schedule_ladder.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/check.h"
#include "runtime/schedule_layout.h"
#include "runtime/schedule_simulation.h"

namespace strata::runtime {
namespace {

constexpr int kPlacements = 5;  // the first, and at most 4 with less

/// Rungs without a gain after which the ladder ends, although more memory was asked for.
constexpr int kPatience = 8;

/// Per buffer the first copy in the same memory.
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

/// Memory of one tier: who holds it when.
struct Held {
  std::vector<Lifetime> lifetimes;
  std::vector<int> roots;
};

/// Per tier, in order of roots.
std::vector<Held> find_held(const ScheduleIndex& index, const Schedule& schedule,
                            const std::vector<int>& root) {
  std::vector<Lifetime> all(index.problem.buffers.size());
  for (Lifetime& lifetime : all) lifetime.begin_ns = kNoLimit;
  for (int b = 0; b < index.buffers(); ++b) {
    Lifetime& lifetime = all[root[b]];
    lifetime.bytes = index.problem.buffers[b].bytes;
    for (int user : index.problem.buffers[b].users) {
      if (schedule.start_ns[user] < 0) continue;
      lifetime.begin_ns = std::min(lifetime.begin_ns, schedule.start_ns[user]);
      lifetime.end_ns = std::max(lifetime.end_ns, schedule.end_ns[user]);
    }
  }
  std::vector<Held> tiers(index.problem.tiers.size());
  for (int b = 0; b < index.buffers(); ++b) {
    if (root[b] != b || all[b].bytes == 0 || all[b].begin_ns >= all[b].end_ns) continue;
    Held& held = tiers[index.problem.buffers[b].tier];
    held.lifetimes.push_back(all[b]);
    held.roots.push_back(b);
  }
  return tiers;
}

/// Fills offsets and arenas; those of soft tiers are what is held at most. Stops looking for a
/// smaller arena at `enough_bytes`.
void lay_out(const ScheduleIndex& index, const std::vector<std::int64_t>& enough_bytes,
             Schedule& schedule) {
  const std::vector<int> root = roots(index, schedule.survives);
  std::vector<Held> tiers = find_held(index, schedule, root);
  schedule.offset_bytes.assign(root.size(), 0);
  schedule.arena_bytes.clear();
  for (std::size_t t = 0; t < tiers.size(); ++t) {
    const ScheduleTier& limits = index.problem.tiers[t];
    std::vector<Lifetime>& lifetimes = tiers[t].lifetimes;
    if (limits.soft) {
      schedule.arena_bytes.push_back(largest_held(lifetimes, limits.alignment));
      continue;
    }
    schedule.arena_bytes.push_back(place_lifetimes(lifetimes, limits.alignment, enough_bytes[t]));
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
  // ones may start together, and they are numbered in their order.
  std::stable_sort(schedule.order.begin(), schedule.order.end(),
                   [&](int a, int b) { return run.start_ns[a] < run.start_ns[b]; });
  schedule.start_ns = std::move(run.start_ns);
  schedule.end_ns = std::move(run.end_ns);
  schedule.survives = std::move(run.survives);
  schedule.makespan_ns = run.makespan_ns;
  return schedule;
}

/// floor * 2^(rung / 4), the same on every machine.
std::int64_t rung_bytes(std::int64_t floor_bytes, int rung) {
  constexpr std::int64_t kQuarters[] = {65536, 77936, 92682, 110218};  // 2^16 * 2^(i/4)
  const int doublings = rung / 4;
  if (doublings >= 60 || floor_bytes > (kNoLimit >> doublings)) return kNoLimit;
  const std::int64_t base = floor_bytes << doublings, part = kQuarters[rung % 4];
  return base / 65536 * part + base % 65536 * part / 65536;
}

/// The largest rung within the budget.
int last_rung(std::int64_t floor_bytes, std::int64_t budget_bytes) {
  int rung = 0;
  if (floor_bytes == 0) return rung;
  while (rung_bytes(floor_bytes, rung + 1) <= std::min(budget_bytes, kNoLimit - 1)) ++rung;
  return rung;
}

class Climb {
 public:
  Climb(const ScheduleIndex& index, const std::vector<SerialRun>& serial)
      : index_(index), serial_(serial) {
    for (int t = 0; t < index.tiers(); ++t) {
      const ScheduleTier& tier = index.problem.tiers[t];
      last_rung_.push_back(tier.ladder ? last_rung(floor_of(t), tier.budget_bytes) : 0);
    }
  }

  Schedule run() {
    int rungs = 0;
    for (int last : last_rung_) rungs = std::max(rungs, last);
    int without_gain = 0;
    for (int rung = 0; rung <= rungs && without_gain < kPatience; ++rung) {
      const std::vector<std::int64_t> budget = budget_of(rung);
      const std::int64_t before = best_.makespan_ns;
      bool tight = false;
      for (const SerialRun& serial : serial_) {
        if (fits(index_, serial.schedule, budget) && is_faster(serial.schedule.makespan_ns))
          best_ = serial.schedule;
        tight = !can_hold(serial, budget) || try_budget(serial, budget) || tight;
      }
      without_gain = best_.makespan_ns == before ? without_gain + 1 : 0;
      if (!tight) break;
    }
    if (best_.order.empty()) best_ = fitting_whole_budget().schedule;
    for (int t = 0; t < index_.tiers(); ++t) best_.floor_bytes.push_back(floor_of(t));
    return std::move(best_);
  }

 private:
  std::int64_t floor_of(int tier) const { return serial_.back().schedule.arena_bytes[tier]; }

  std::vector<std::int64_t> whole_budget() const {
    std::vector<std::int64_t> budget;
    for (const ScheduleTier& tier : index_.problem.tiers) budget.push_back(tier.budget_bytes);
    return budget;
  }

  std::vector<std::int64_t> budget_of(int rung) const {
    std::vector<std::int64_t> budget = whole_budget();
    for (int t = 0; t < index_.tiers(); ++t)
      if (index_.problem.tiers[t].ladder)
        budget[t] = rung_bytes(floor_of(t), std::min(rung, last_rung_[t]));
    return budget;
  }

  /// One whose floor lies between the last rung and the budget.
  const SerialRun& fitting_whole_budget() const {
    const auto found = std::find_if(serial_.begin(), serial_.end(), [&](const SerialRun& serial) {
      return fits(index_, serial.schedule, whole_budget());
    });
    STRATA_CHECK(found != serial_.end(), "no serial order fits");
    return *found;
  }

  bool is_faster(std::int64_t makespan_ns) const {
    return best_.order.empty() || makespan_ns < best_.makespan_ns;
  }

  bool can_hold(const SerialRun& serial, const std::vector<std::int64_t>& budget) const {
    for (int t = 0; t < index_.tiers(); ++t)
      if (!index_.problem.tiers[t].soft && serial.most_held[t] > budget[t]) return false;
    return true;
  }

  /// Keeps the run if it is faster. Where places need more than the bytes that are held at one time
  /// (there are holes), simulates again with less. Returns whether more memory could matter.
  bool try_budget(const SerialRun& serial, const std::vector<std::int64_t>& budget) {
    std::vector<std::int64_t> granted = budget;
    for (std::size_t t = 0; t < granted.size(); ++t)
      granted[t] = std::max(granted[t], serial.most_held[t]);  // soft ones
    bool tight = false;
    for (int placement = 0; placement < kPlacements; ++placement) {
      SimulatedRun run = simulate(index_, serial.sequence, granted);
      tight = tight || run.tight;
      if (!is_faster(run.makespan_ns)) return tight;
      Schedule schedule = without_places(index_, std::move(run));
      lay_out(index_, budget, schedule);
      if (!reduce_by_excess(schedule.arena_bytes, budget, granted)) {
        best_ = std::move(schedule);
        return tight;
      }
      for (std::size_t t = 0; t < granted.size(); ++t)
        granted[t] = std::max(granted[t], serial.most_held[t]);
      tight = true;  // without holes it would have fitted
    }
    return tight;
  }

  /// Whether an arena is larger than its budget.
  bool reduce_by_excess(const std::vector<std::int64_t>& arena,
                        const std::vector<std::int64_t>& budget,
                        std::vector<std::int64_t>& granted) const {
    bool exceeds = false;
    for (std::size_t t = 0; t < arena.size(); ++t) {
      if (index_.problem.tiers[t].soft || arena[t] <= budget[t]) continue;
      granted[t] -= arena[t] - budget[t];
      exceeds = true;
    }
    return exceeds;
  }

  const ScheduleIndex& index_;
  const std::vector<SerialRun>& serial_;
  std::vector<int> last_rung_;
  Schedule best_;
};

}  // namespace

bool fits(const ScheduleIndex& index, const Schedule& schedule,
          const std::vector<std::int64_t>& budget_bytes) {
  for (std::size_t t = 0; t < schedule.arena_bytes.size(); ++t)
    if (!index.problem.tiers[t].soft && schedule.arena_bytes[t] > budget_bytes[t]) return false;
  return !schedule.arena_bytes.empty() || index.tiers() == 0;
}

SerialRun run_serially(const ScheduleIndex& index, std::vector<int> sequence) {
  SimulatedRun run;
  run.start_ns.assign(sequence.size(), 0);
  run.end_ns.assign(sequence.size(), 0);
  run.survives.assign(index.problem.gaps.size(), false);
  for (int t : sequence) {
    run.start_ns[t] = run.makespan_ns;
    run.end_ns[t] = run.makespan_ns += index.problem.tasks[t].cost_ns;
  }
  SerialRun serial;
  serial.sequence = std::move(sequence);
  serial.schedule = without_places(index, std::move(run));
  const std::vector<Held> held =
      find_held(index, serial.schedule, roots(index, serial.schedule.survives));
  for (int t = 0; t < index.tiers(); ++t)
    serial.most_held.push_back(largest_held(held[t].lifetimes, index.problem.tiers[t].alignment));
  return serial;
}

void lay_out_serially(const ScheduleIndex& index, SerialRun& serial) {
  lay_out(index, std::vector<std::int64_t>(index.problem.tiers.size(), 0), serial.schedule);
}

Schedule climb(const ScheduleIndex& index, const std::vector<SerialRun>& serial) {
  return Climb(index, serial).run();
}

}  // namespace strata::runtime
