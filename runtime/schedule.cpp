#include "runtime/schedule.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/error.h"
#include "runtime/schedule_index.h"
#include "runtime/schedule_layout.h"

namespace strata::runtime {
namespace {

/// Gives every buffer of a run its place; arena sizes of soft tiers are what they hold at most.
void lay_out(const ScheduleIndex& index, Schedule& schedule) {
  const ScheduleProblem& problem = index.problem;
  schedule.offset_bytes.assign(problem.buffers.size(), 0);
  for (int tier = 0; tier < index.tiers(); ++tier) {
    std::vector<Lifetime> lifetimes;
    std::vector<int> of;
    for (int b = 0; b < index.buffers(); ++b) {
      const ScheduleBuffer& buffer = problem.buffers[b];
      if (buffer.tier != tier || buffer.bytes == 0) continue;
      Lifetime lifetime{buffer.bytes, schedule.start_ns[buffer.users.front()], 0, 0};
      for (int user : buffer.users) {
        lifetime.begin_ns = std::min(lifetime.begin_ns, schedule.start_ns[user]);
        lifetime.end_ns = std::max(lifetime.end_ns, schedule.end_ns[user]);
      }
      lifetimes.push_back(lifetime);
      of.push_back(b);
    }
    const ScheduleTier& limits = problem.tiers[tier];
    if (limits.soft) {
      schedule.arena_bytes.push_back(largest_held(lifetimes, limits.alignment));
      continue;
    }
    schedule.arena_bytes.push_back(place_lifetimes(lifetimes, limits.alignment, 0));
    for (std::size_t i = 0; i < of.size(); ++i)
      schedule.offset_bytes[of[i]] = lifetimes[i].offset_bytes;
  }
}

/// One task after another, in the order of the problem's list.
Schedule serial_schedule(const ScheduleIndex& index) {
  Schedule schedule;
  schedule.order.resize(index.problem.tasks.size());
  std::iota(schedule.order.begin(), schedule.order.end(), 0);
  for (const ScheduleTask& task : index.problem.tasks) {
    schedule.start_ns.push_back(schedule.makespan_ns);
    schedule.end_ns.push_back(schedule.makespan_ns += task.cost_ns);
  }
  schedule.survives.assign(index.problem.gaps.size(), false);
  lay_out(index, schedule);
  schedule.floor_bytes = schedule.arena_bytes;
  return schedule;
}

}  // namespace

Schedule make_schedule(const ScheduleProblem& problem) {
  const ScheduleIndex index(problem);
  Schedule schedule = serial_schedule(index);
  for (int tier = 0; tier < index.tiers(); ++tier) {
    const ScheduleTier& limits = problem.tiers[tier];
    if (limits.soft || schedule.floor_bytes[tier] <= limits.budget_bytes) continue;
    throw OutOfMemory("out of memory in tier " + limits.name + ": its budget is " +
                      std::to_string(limits.budget_bytes) +
                      " bytes, and this Plan needs at least " +
                      std::to_string(schedule.floor_bytes[tier]) +
                      ", even with one instruction after another: raise the budget, or lower the "
                      "batch, offload more or recompute more");
  }
  return schedule;
}

}  // namespace strata::runtime
