#include "runtime/schedule/schedule_ladder.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/check.h"
#include "runtime/schedule/schedule_simulation.h"

namespace strata::runtime {
namespace {

constexpr int kPlacements = 5;  // the first attempt, and at most 4 with less memory

/// Number of rungs without a gain after which the ladder ends, even if more memory was asked for.
constexpr int kPatience = 8;

/// Returns floor * 2^(i/16) for i = 0, 1, 2, then floor * 2^(i/4): a little more than the floor
/// often helps much. Integers give the same result on every machine.
std::int64_t rung_bytes(std::int64_t floor_bytes, int rung) {
  constexpr int kFine = 2;
  constexpr std::int64_t kSixteenths[] = {65536, 68438, 71468};        // 2^16 * 2^(i/16)
  constexpr std::int64_t kQuarters[] = {65536, 77936, 92682, 110218};  // 2^16 * 2^(i/4)
  const bool fine = rung <= kFine;
  const int quarters = fine ? 0 : rung - kFine, doublings = quarters / 4;
  if (doublings >= 60 || floor_bytes > (kNoLimit >> doublings)) return kNoLimit;
  const std::int64_t part = fine ? kSixteenths[rung] : kQuarters[quarters % 4];
  const std::int64_t base = floor_bytes << doublings;
  return base / 65536 * part + base % 65536 * part / 65536;
}

/// Returns the first rung that is the whole budget; without one, the largest.
int last_rung(std::int64_t floor_bytes, std::int64_t budget_bytes) {
  int rung = 0;
  if (floor_bytes == 0) return rung;
  while (rung_bytes(floor_bytes, rung) < budget_bytes &&
         rung_bytes(floor_bytes, rung + 1) < kNoLimit)
    ++rung;
  return rung;
}

class Climb {
 public:
  Climb(const ScheduleIndex& index, const std::vector<SerialRun>& serial)
      : index_(index), serial_(serial), layouts_(index) {
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
    if (index_.problem.effort == ScheduleEffort::full) tighten(index_, best_);
    for (int t = 0; t < index_.tiers(); ++t) best_.floor_bytes.push_back(floor_of(t));
    return std::move(best_);
  }

 private:
  std::int64_t floor_of(int tier) const {
    if (!index_.problem.tiers[tier].soft) return serial_.back().schedule.arena_bytes[tier];
    std::int64_t most = 0;  // over runs that are laid out, since each may be kept
    for (const SerialRun& serial : serial_)
      if (!serial.schedule.order.empty()) most = std::max(most, serial.most_held[tier]);
    return most;
  }

  std::vector<std::int64_t> whole_budget() const {
    std::vector<std::int64_t> budget;
    for (int t = 0; t < index_.tiers(); ++t) {
      const ScheduleTier& tier = index_.problem.tiers[t];
      budget.push_back(tier.soft ? std::max(tier.budget_bytes, floor_of(t)) : tier.budget_bytes);
    }
    return budget;
  }

  std::vector<std::int64_t> budget_of(int rung) const {
    std::vector<std::int64_t> budget = whole_budget();
    for (int t = 0; t < index_.tiers(); ++t)
      if (index_.problem.tiers[t].ladder)
        budget[t] = std::min(rung_bytes(floor_of(t), std::min(rung, last_rung_[t])), budget[t]);
    return budget;
  }

  /// Returns a run that fits the whole budget, though perhaps not the last rung.
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
      if (serial.most_held[t] > budget[t]) return false;
    return true;
  }

  /// Keeps the simulated run if it is faster. If its places need more than the bytes held at one
  /// time (there are holes), simulates again with less. Returns true if more memory could matter.
  bool try_budget(const SerialRun& serial, const std::vector<std::int64_t>& budget) {
    std::vector<std::int64_t> granted = budget;
    bool tight = false;
    for (int placement = 0; placement < kPlacements; ++placement) {
      SimulatedRun run = simulate(index_, serial.tail_ns, serial.sequence, granted);
      tight = tight || run.tight;
      if (!is_faster(run.makespan_ns)) return tight;
      Schedule schedule = without_places(index_, std::move(run));
      const std::vector<std::int64_t> held = layouts_.lay_out(budget, schedule);
      std::vector<std::int64_t> less = granted;
      if (!reduce_by_excess(schedule.arena_bytes, held, budget, less)) {
        best_ = std::move(schedule);
        return tight;
      }
      tight = true;  // it would have fitted without holes
      for (std::size_t t = 0; t < less.size(); ++t)
        less[t] = std::max(less[t], serial.most_held[t]);
      if (less == granted) return tight;
      granted = std::move(less);
    }
    return tight;
  }

  /// Lowers `granted` below what the run held, by the bytes by which arenas exceed their budgets.
  /// Returns true if any does.
  bool reduce_by_excess(const std::vector<std::int64_t>& arena,
                        const std::vector<std::int64_t>& held,
                        const std::vector<std::int64_t>& budget,
                        std::vector<std::int64_t>& granted) const {
    bool exceeds = false;
    for (std::size_t t = 0; t < arena.size(); ++t) {
      if (index_.problem.tiers[t].soft || arena[t] <= budget[t]) continue;
      granted[t] = std::min(granted[t], held[t]) - (arena[t] - budget[t]);
      exceeds = true;
    }
    return exceeds;
  }

  const ScheduleIndex& index_;
  const std::vector<SerialRun>& serial_;
  std::vector<int> last_rung_;
  Layouts layouts_;
  Schedule best_;
};

}  // namespace

Schedule climb(const ScheduleIndex& index, const std::vector<SerialRun>& serial) {
  return Climb(index, serial).run();
}

}  // namespace strata::runtime
