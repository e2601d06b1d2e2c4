#include "runtime/schedule/schedule_index.h"

#include <algorithm>
#include <iterator>

#include "core/check.h"
#include "runtime/schedule/place_lifetimes.h"

namespace strata::runtime {
namespace {

/// 73 minutes: shorter tasks leave the simulation 20 binary digits for parts of a nanosecond.
constexpr std::int64_t kLongestTaskNs = std::int64_t{1} << 42;

bool ascending(const std::vector<int>& list, int end) {
  int last = -1;
  for (int item : list) {
    if (item <= last || item >= end) return false;
    last = item;
  }
  return true;
}

}  // namespace

ScheduleIndex::ScheduleIndex(const ScheduleProblem& wanted)
    : problem(wanted),
      needs(wanted.tasks.size()),
      needed_by(wanted.tasks.size()),
      earlier(wanted.tasks.size()),
      buffers_of(wanted.tasks.size()),
      gap_after(wanted.buffers.size(), kNoGap),
      gap_before(wanted.buffers.size(), kNoGap),
      gap_of(wanted.tasks.size(), kNoGap) {
  check_tasks();
  check_buffers();
  for (int b = 0; b < buffers(); ++b)
    for (int user : problem.buffers[b].users) buffers_of[user].push_back(b);
  index_gaps();
  link();
  find_tails();
}

std::int64_t ScheduleIndex::held_bytes(int buffer) const {
  const ScheduleBuffer& b = problem.buffers[buffer];
  return aligned(b.bytes, problem.tiers[b.tier].alignment);
}

void ScheduleIndex::check_tasks() const {
  for (int t = 0; t < tasks(); ++t) {
    const ScheduleTask& task = problem.tasks[t];
    STRATA_CHECK(task.queue >= 0 && task.queue < problem.queues, "task", t);
    STRATA_CHECK(task.cost_ns > 0 && task.cost_ns < kLongestTaskNs, "task", t, task.cost_ns);
    for (int other : task.after) STRATA_CHECK(other >= 0 && other < t, "task", t, "after", other);
    for (const ResourceShare& s : task.shares)
      STRATA_CHECK(s.resource >= 0 && s.resource < problem.resources && s.share > 0 && s.share <= 1,
                   "task", t, "resource", s.resource, "share", s.share);
  }
}

void ScheduleIndex::check_buffers() const {
  for (const ScheduleTier& tier : problem.tiers) STRATA_CHECK(tier.alignment > 0, tier.name);
  for (int b = 0; b < buffers(); ++b) {
    const ScheduleBuffer& buffer = problem.buffers[b];
    STRATA_CHECK(buffer.tier >= 0 && buffer.tier < tiers() && buffer.bytes >= 0, "buffer", b);
    STRATA_CHECK(!buffer.users.empty() && ascending(buffer.users, tasks()), "users of buffer", b);
    STRATA_CHECK(buffer.place_bytes == kAnyPlace ||
                     (buffer.place_bytes >= 0 &&
                      buffer.place_bytes % problem.tiers[buffer.tier].alignment == 0),
                 "buffer", b, "at", buffer.place_bytes);
  }
}

void ScheduleIndex::index_gaps() {
  for (int g = 0; g < static_cast<int>(problem.gaps.size()); ++g) {
    const ScheduleGap& gap = problem.gaps[g];
    STRATA_CHECK(gap.before >= 0 && gap.before < buffers() && gap.after >= 0 &&
                     gap.after < buffers() && gap_after[gap.before] == kNoGap &&
                     gap_before[gap.after] == kNoGap,
                 "gap", g, "shares a copy with another");
    gap_after[gap.before] = g;
    gap_before[gap.after] = g;
    const ScheduleBuffer &from = problem.buffers[gap.before], &to = problem.buffers[gap.after];
    STRATA_CHECK(from.tier == to.tier && from.bytes == to.bytes, "gap", g, "of unequal copies");
    for (const ScheduleBuffer* copy : {&from, &to})
      STRATA_CHECK(!copy->filled_before && !copy->kept && copy->place_bytes == kAnyPlace, "gap", g,
                   "of a copy that passes between runs");
    STRATA_CHECK(!gap.ins.empty(), "gap", g, "brings nothing");
    for (int in : gap.ins) {
      STRATA_CHECK(in > from.users.back() && in < tasks() && gap_of[in] == kNoGap, "gap", g, "in",
                   in);
      gap_of[in] = g;
    }
  }
  // Other buffers of a cancelled transfer (windows) hold nothing that a later copy could keep.
  for (int t = 0; t < tasks(); ++t) {
    if (gap_of[t] == kNoGap) continue;
    for (int b : buffers_of[t])
      STRATA_CHECK(
          b == problem.gaps[gap_of[t]].after || (gap_before[b] == kNoGap && gap_after[b] == kNoGap),
          "task", t, "of gap", gap_of[t], "uses a copy of another gap: buffer", b);
  }
}

void ScheduleIndex::link() {
  const auto sort_once = [](std::vector<int>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  };
  for (int t = 0; t < tasks(); ++t) {
    needs[t] = earlier[t] = problem.tasks[t].after;
    if (gap_of[t] != kNoGap) {
      const std::vector<int>& users = problem.buffers[problem.gaps[gap_of[t]].before].users;
      earlier[t].insert(earlier[t].end(), users.begin(), users.end());
      needs[t].push_back(users.front());
      std::copy_if(users.begin(), users.end(), std::back_inserter(needs[t]),
                   [&](int user) { return problem.tasks[user].kind == TaskKind::in; });
    }
    sort_once(needs[t]);
    sort_once(earlier[t]);
    for (int other : needs[t]) needed_by[other].push_back(t);
    if (problem.tasks[t].ordered) ordered.push_back(t);
  }
}

void ScheduleIndex::find_tails() {
  tail_ns.assign(problem.tasks.size(), 0);
  std::int64_t later_ordered = 0;  // longest tail of the ordered tasks that start after this one
  for (int t = tasks() - 1; t >= 0; --t) {
    tail_ns[t] += problem.tasks[t].cost_ns;
    if (problem.tasks[t].ordered) later_ordered = tail_ns[t] = std::max(tail_ns[t], later_ordered);
    for (int other : problem.tasks[t].after) tail_ns[other] = std::max(tail_ns[other], tail_ns[t]);
  }
}

}  // namespace strata::runtime
