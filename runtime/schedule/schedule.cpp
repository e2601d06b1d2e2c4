#include "runtime/schedule/schedule.h"

#include <algorithm>
#include <utility>

#include "core/at_once.h"
#include "runtime/schedule/schedule_index.h"
#include "runtime/schedule/schedule_ladder.h"
#include "runtime/schedule/schedule_sequence.h"

namespace strata::runtime {
namespace {

/// Adds up the floors of the tiers whose budget matters most: those with a ladder, else all.
std::int64_t total_floor(const ScheduleIndex& index, const SerialRun& serial) {
  std::int64_t ladders = 0, all = 0;
  for (int t = 0; t < index.tiers(); ++t) {
    const ScheduleTier& tier = index.problem.tiers[t];
    if (tier.soft) continue;
    all += serial.schedule.arena_bytes[t];
    if (tier.ladder) ladders += serial.schedule.arena_bytes[t];
  }
  return ladders > 0 ? ladders : all;
}

/// Makes the serial runs; the one with the smallest floors comes last.
std::vector<SerialRun> serial_runs(const ScheduleIndex& index) {
  std::vector<std::vector<int>> sequences = serial_sequences(index);
  std::vector<SerialRun> runs = all_at_once(sequences.size(), [&](std::size_t i) {
    return run_in_places(index, std::move(sequences[i]));
  });
  const auto needs_least =
      std::min_element(runs.begin(), runs.end(), [&](const SerialRun& a, const SerialRun& b) {
        return total_floor(index, a) < total_floor(index, b);
      });
  std::rotate(needs_least, needs_least + 1, runs.end());
  return runs;
}

/// Returns the tier whose budget is too small, or nothing if one of the runs fits.
std::optional<int> find_short_tier(const ScheduleIndex& index, const std::vector<SerialRun>& runs) {
  const ScheduleProblem& problem = index.problem;
  std::vector<std::int64_t> budget;
  for (const ScheduleTier& tier : problem.tiers) budget.push_back(tier.budget_bytes);
  for (const SerialRun& run : runs)
    if (fits(index, run.schedule, budget)) return {};
  const std::vector<std::int64_t>& floor = runs.back().schedule.arena_bytes;
  for (std::size_t t = 0; t < floor.size(); ++t) {
    if (!problem.tiers[t].soft && floor[t] > budget[t]) return static_cast<int>(t);
  }
  return {};
}

}  // namespace

Schedule make_schedule(const ScheduleProblem& problem) {
  const ScheduleIndex index(problem);
  if (problem.tasks.empty()) {
    Schedule nothing;
    nothing.arena_bytes = nothing.floor_bytes = std::vector<std::int64_t>(problem.tiers.size(), 0);
    return nothing;
  }
  std::vector<SerialRun> runs = serial_runs(index);
  if (const std::optional<int> tier = find_short_tier(index, runs)) {
    Schedule none;
    none.floor_bytes = runs.back().schedule.arena_bytes;
    none.short_tier = tier;
    return none;
  }
  SerialRun least = std::move(runs.back());
  runs.pop_back();
  for (ShakenOrder& order : shaken_orders(index))
    runs.push_back(run_serially(index, std::move(order.sequence), std::move(order.tail_ns)));
  runs.push_back(std::move(least));
  return climb(index, runs);
}

}  // namespace strata::runtime
