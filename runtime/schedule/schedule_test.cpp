// Tests one rule of the scheduler each, on problems small enough to check by hand.
#include "runtime/schedule/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.h"
#include "runtime/testing/schedule_checks.h"

namespace strata::runtime {
namespace {

constexpr int kCompute = 0, kUpload = 1, kDownload = 2, kDisk = 3;
constexpr std::int64_t kPlenty = std::int64_t{1} << 40;

/// Builds a problem; each task is put on the queue of its kind.
class Builder {
 public:
  Builder() {
    problem.queues = 4;
    problem.tiers = {{"device", kPlenty, 64, false, true}};
  }

  int work(std::int64_t cost_ns, std::vector<int> after = {}) {
    return add(TaskKind::work, kCompute, cost_ns, std::move(after));
  }
  int in(std::int64_t cost_ns, std::vector<int> after = {}) {
    return add(TaskKind::in, kUpload, cost_ns, std::move(after));
  }
  int out(std::int64_t cost_ns, std::vector<int> after = {}) {
    return add(TaskKind::out, kDownload, cost_ns, std::move(after));
  }
  int buffer(std::vector<int> users, std::int64_t bytes = 64, int tier = 0) {
    problem.buffers.push_back({tier, bytes, std::move(users)});
    return static_cast<int>(problem.buffers.size()) - 1;
  }
  ScheduleTask& task(int id) { return problem.tasks[id]; }

  /// Makes the schedule and checks it for faults.
  Schedule schedule() const {
    Schedule made = make_schedule(problem);
    for (const std::string& fault : faults(problem, made)) ADD_FAILURE() << fault;
    return made;
  }

  ScheduleProblem problem;

 private:
  int add(TaskKind kind, int queue, std::int64_t cost_ns, std::vector<int> after) {
    ScheduleTask task;
    task.kind = kind;
    task.queue = queue;
    task.cost_ns = cost_ns;
    task.after = std::move(after);
    problem.tasks.push_back(std::move(task));
    return static_cast<int>(problem.tasks.size()) - 1;
  }
};

/// Makes `uses` of 100 ns one after another, each with a value of its own, of 64 bytes, that takes
/// 100 ns to bring. `budget` counts values.
Builder stream_of_values(int uses, std::int64_t budget) {
  Builder b;
  b.problem.tiers[0].budget_bytes = 64 * budget;
  for (int i = 0; i < uses; ++i) {
    std::vector<int> after{b.in(100)};
    if (i > 0) after.insert(after.begin(), 2 * i - 1);
    const int use = b.work(100, after);
    b.buffer({after.back(), use});
  }
  return b;
}

TEST(Schedule, OfNothingIsEmpty) {
  const Schedule schedule = make_schedule(Builder().problem);
  EXPECT_TRUE(schedule.order.empty());
  EXPECT_EQ(schedule.makespan_ns, 0);
}

TEST(Schedule, IsNoneBelowTheFloorAndSaysTierAndFloor) {
  EXPECT_EQ(stream_of_values(4, 1).schedule().floor_bytes[0], 64);
  Builder b = stream_of_values(4, 1);
  b.problem.tiers[0].budget_bytes = 63;
  const Schedule none = make_schedule(b.problem);
  EXPECT_EQ(none.short_tier, 0);
  EXPECT_EQ(none.floor_bytes[0], 64);
  EXPECT_TRUE(none.order.empty());
}

TEST(Schedule, PrefetchesAsFarAsMemoryAllows) {
  // Transfers and uses alternate with one value at a time, and overlap with two.
  EXPECT_EQ(stream_of_values(4, 1).schedule().makespan_ns, 800);
  EXPECT_EQ(stream_of_values(4, 2).schedule().makespan_ns, 500);
  EXPECT_EQ(stream_of_values(4, 100).schedule().makespan_ns, 500);
  // Values are brought while the first use, which is slow, runs: as many as fit.
  const auto brought_early = [](std::int64_t budget) {
    Builder b = stream_of_values(8, budget);
    b.task(1).cost_ns = 1000;
    for (int i = 0; i < 8; ++i) b.task(2 * i).cost_ns = 200;
    const Schedule schedule = b.schedule();
    int early = 0;
    for (int i = 1; i < 8; ++i) early += schedule.end_ns[2 * i] <= schedule.end_ns[1] ? 1 : 0;
    return early;
  };
  EXPECT_EQ(brought_early(2), 1);
  EXPECT_EQ(brought_early(4), 3);
  EXPECT_EQ(brought_early(8), 4);  // the link is the limit: more would gain nothing
}

TEST(Schedule, UsesNoMoreOfTheLadderThanMakesItFaster) {
  const Schedule schedule = stream_of_values(4, 100).schedule();
  EXPECT_LE(schedule.arena_bytes[0], 3 * 64);
}

/// Makes a value used at the start and at the end, and one used `between`, all of 64 bytes.
Builder value_used_twice(std::int64_t budget) {
  Builder b;
  b.problem.tiers[0].budget_bytes = 64 * budget;
  const int first_in = b.in(100), first = b.work(100, {first_in});
  const int other_in = b.in(100), between = b.work(100, {first, other_in});
  const int again_in = b.in(100), last = b.work(100, {between, again_in});
  const int before = b.buffer({first_in, first});
  b.buffer({other_in, between});
  const int after = b.buffer({again_in, last});
  b.problem.gaps.push_back({before, after, {again_in}});
  return b;
}

TEST(Schedule, ASurvivingCopyCancelsItsTransfer) {
  const Schedule tight = value_used_twice(1).schedule();
  EXPECT_FALSE(tight.survives[0]);
  EXPECT_EQ(tight.makespan_ns, 600);
  const Schedule wide = value_used_twice(2).schedule();
  EXPECT_TRUE(wide.survives[0]);
  EXPECT_EQ(wide.start_ns[4], -1);
  EXPECT_EQ(wide.offset_bytes[0], wide.offset_bytes[2]);
  EXPECT_EQ(wide.order.size(), 5u);
  EXPECT_EQ(wide.makespan_ns, 400);
}

TEST(Schedule, TheCopyWithTheFarthestNextUseIsGivenUp) {
  Builder b;
  b.problem.tiers[0].budget_bytes = 2 * 64;
  const int far_in = b.in(100), near_in = b.in(100), both = b.work(100, {far_in, near_in});
  const int other_in = b.in(10), other = b.work(500, {both, other_in});
  const int near_again = b.in(300), near = b.work(100, {other, near_again});
  const int far_again = b.in(300), far = b.work(100, {near, far_again});
  const int far1 = b.buffer({far_in, both}), near1 = b.buffer({near_in, both});
  b.buffer({other_in, other});
  const int near2 = b.buffer({near_again, near}), far2 = b.buffer({far_again, far});
  b.problem.gaps = {{near1, near2, {near_again}}, {far1, far2, {far_again}}};
  const Schedule schedule = b.schedule();
  EXPECT_TRUE(schedule.survives[0]);
  EXPECT_FALSE(schedule.survives[1]);
}

TEST(Schedule, HopsBeforeTheLastAreCancelledToo) {
  const auto build = [](std::int64_t values) {
    Builder b;
    b.problem.tiers[0].budget_bytes = 64 * values;
    b.problem.tiers.push_back({"pinned", kPlenty, 64, false, false});
    const int read = b.in(50), up = b.in(50, {read}), first = b.work(100, {up});
    const int other_in = b.in(100), other = b.work(100, {first, other_in});
    const int read_again = b.in(50), up_again = b.in(50, {read_again});
    const int last = b.work(100, {other, up_again});
    for (int t : {read, read_again}) b.task(t).queue = kDisk;
    b.buffer({read, up}, 64, 1);
    const int before = b.buffer({up, first});
    b.buffer({other_in, other});
    b.buffer({read_again, up_again}, 64, 1);
    const int after = b.buffer({up_again, last});
    b.problem.gaps.push_back({before, after, {read_again, up_again}});
    return b;
  };
  const Schedule wide = build(2).schedule();
  EXPECT_TRUE(wide.survives[0]);
  EXPECT_EQ(wide.start_ns[5], -1);
  EXPECT_EQ(wide.start_ns[6], -1);
  const Schedule tight = build(1).schedule();
  EXPECT_FALSE(tight.survives[0]);
  EXPECT_GE(tight.start_ns[5], 0);
}

TEST(Schedule, TwoUsersMayShareASurvivorAtOneTime) {
  Builder b;
  const int first_in = b.in(100), first = b.work(100, {first_in});
  const int again = b.in(100), second = b.work(100, {again});
  b.task(second).queue = kDisk;
  const int before = b.buffer({first_in, first}), after = b.buffer({again, second});
  b.problem.gaps.push_back({before, after, {again}});
  const Schedule schedule = b.schedule();
  EXPECT_TRUE(schedule.survives[0]);
  EXPECT_EQ(schedule.start_ns[first], 100);
  EXPECT_EQ(schedule.start_ns[second], 100);
}

TEST(Schedule, OrderedTasksStartInTheOrderOfTheList) {
  Builder b;
  const int early = b.in(100), slow = b.work(1000, {early});
  const int first = b.out(10, {slow}), second = b.in(10), last = b.work(10, {slow, second});
  EXPECT_EQ(b.schedule().start_ns[second], 100);
  b.task(first).ordered = b.task(second).ordered = true;
  const Schedule schedule = b.schedule();
  EXPECT_EQ(schedule.start_ns[first], 1100);
  EXPECT_EQ(schedule.start_ns[second], 1100);
  EXPECT_EQ(schedule.start_ns[last], 1110);
}

TEST(Schedule, ASoftTierLimitsHowFarAheadAndIsRaisedToItsFloor) {
  const auto makespan = [](std::int64_t ahead) {
    Builder b = stream_of_values(4, 100);
    b.problem.tiers.push_back({"ahead", ahead, 1, true, false});
    for (int i = 0; i < 4; ++i) b.buffer({2 * i, 2 * i + 1}, 10, 1);
    const Schedule schedule = b.schedule();
    EXPECT_EQ(schedule.floor_bytes[1], 10);
    EXPECT_EQ(schedule.offset_bytes.back(), 0);
    return schedule.makespan_ns;
  };
  EXPECT_EQ(makespan(0), 800);  // the limit is raised to one value
  EXPECT_EQ(makespan(19), 800);
  EXPECT_EQ(makespan(20), 500);
}

TEST(Schedule, OutChainsReleaseTheirMemoryHopByHop) {
  const auto build = [](std::int64_t device, std::int64_t pinned) {
    Builder b;
    b.problem.tiers[0].budget_bytes = 64 * device;
    b.problem.tiers.push_back({"pinned", 64 * pinned, 64, false, false});
    for (int i = 0, before = -1; i < 4; ++i) {
      const int made = b.work(100, before < 0 ? std::vector<int>{} : std::vector<int>{before});
      const int down = b.out(100, {made}), write = b.out(100, {down});
      b.task(write).queue = kDisk;
      b.buffer({made, down});
      b.buffer({down, write}, 64, 1);
      before = made;
    }
    return b;
  };
  EXPECT_EQ(build(1, 1).schedule().makespan_ns,
            4 * 200 + 100);  // the next value waits until this one has left
  EXPECT_EQ(build(2, 2).schedule().makespan_ns, 4 * 100 + 200);
}

TEST(Schedule, ASharedResourceSlowsBothTasks) {
  Builder b;
  b.problem.resources = 2;
  const int use = b.work(100), bring = b.in(100), apart = b.out(100);
  b.task(use).shares = {{0, 0.75}};
  b.task(bring).shares = {{0, 0.75}, {1, 0.5}};
  b.task(apart).shares = {{1, 0.5}};
  const Schedule schedule = b.schedule();
  // Two shares of 0.75 of one resource give two thirds of the speed.
  EXPECT_NEAR(static_cast<double>(schedule.end_ns[use]), 150, 1);
  EXPECT_NEAR(static_cast<double>(schedule.end_ns[bring]), 150, 1);
  EXPECT_EQ(schedule.end_ns[apart], 100);
}

TEST(Schedule, AFreedResourceSpeedsTheRestUp) {
  Builder b;
  b.problem.resources = 1;
  const int brief = b.work(50), lasting = b.in(100);
  b.task(brief).shares = b.task(lasting).shares = {{0, 1}};
  const Schedule schedule = b.schedule();
  EXPECT_EQ(schedule.end_ns[brief], 100);
  EXPECT_EQ(schedule.end_ns[lasting], 150);
}

TEST(Schedule, TheTaskWithTheLongestWayToTheEndStartsFirst) {
  Builder b;
  const int side = b.work(100), main = b.work(100), chain = b.work(300, {main});
  b.task(chain).queue = kDisk;
  const Schedule schedule = b.schedule();
  EXPECT_EQ(schedule.start_ns[main], 0);
  EXPECT_EQ(schedule.start_ns[side], 100);
}

}  // namespace
}  // namespace strata::runtime
