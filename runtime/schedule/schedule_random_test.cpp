// Checks thousands of random problems, with budgets down to their floors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/error.h"
#include "runtime/schedule/schedule.h"
#include "runtime/testing/random_problem.h"
#include "runtime/testing/schedule_checks.h"
#include "runtime/testing/schedule_replay.h"

namespace strata::runtime {
namespace {

std::string listed(const std::vector<std::string>& faults) {
  std::string text;
  for (const std::string& fault : faults) text += fault + "\n";
  return text;
}

/// Limits the budgets of hard tiers to floor * factor.
ScheduleProblem within(ScheduleProblem problem, const std::vector<std::int64_t>& floor,
                       double factor) {
  for (std::size_t t = 0; t < floor.size(); ++t)
    problem.tiers[t].budget_bytes =
        static_cast<std::int64_t>(static_cast<double>(floor[t]) * factor);
  return problem;
}

std::vector<std::int64_t> floors_of(const ScheduleProblem& problem) {
  return make_schedule(problem).floor_bytes;
}

ScheduleProblem problem_of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  RandomProblemSize size;
  size.work = 2 + static_cast<int>(random() % (seed % 10 == 0 ? 40 : 8));
  size.gaps = random() % 4 != 0;
  size.ordered = random() % 2 == 0;
  size.soft = random() % 2 == 0;
  size.shares = random() % 2 == 0;
  size.windows = seed % 3 == 0;
  return random_problem(random, size);
}

constexpr std::uint64_t kProblems = 450;

TEST(RandomSchedules, AreFaultlessFromTheFloorUp) {
  for (std::uint64_t seed = 1; seed <= kProblems; ++seed) {
    const ScheduleProblem problem = problem_of(seed);
    const std::vector<std::int64_t> floor = floors_of(problem);
    for (double factor : {1.0, 1.2, 2.0}) {
      const ScheduleProblem limited = within(problem, floor, factor);
      ASSERT_EQ(listed(faults(limited, make_schedule(limited))), "") << seed << " " << factor;
    }
  }
}

bool equal(const Schedule& a, const Schedule& b) {
  return a.order == b.order && a.start_ns == b.start_ns && a.end_ns == b.end_ns &&
         a.survives == b.survives && a.offset_bytes == b.offset_bytes &&
         a.arena_bytes == b.arena_bytes && a.floor_bytes == b.floor_bytes &&
         a.makespan_ns == b.makespan_ns;
}

TEST(RandomSchedules, AreTheSameForTheSameProblem) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const ScheduleProblem problem = problem_of(seed);
    const ScheduleProblem limited = within(problem, floors_of(problem), 1.5);
    ASSERT_TRUE(equal(make_schedule(limited), make_schedule(ScheduleProblem(limited)))) << seed;
  }
}

/// Rungs are those of schedule_ladder.cpp, budgets lie on them and halfway to the next.
TEST(RandomSchedules, AreNeverSlowerThanOnALowerRungAndUseMemoryBetweenRungs) {
  int faster = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    ScheduleProblem problem = problem_of(seed);
    const std::vector<std::int64_t> floor = floors_of(problem);
    problem.tiers[1].budget_bytes = 2 * floor[1];
    const auto makespan = [&](double factor) {
      problem.tiers[0].budget_bytes =
          std::llround(std::ceil(static_cast<double>(floor[0]) * factor));
      return make_schedule(problem).makespan_ns;
    };
    std::int64_t below = makespan(1);
    for (const double sixteenths : {1, 2, 4, 8, 12, 16, 20, 24, 28, 32}) {
      const std::int64_t on_rung = makespan(std::exp2(sixteenths / 16));
      ASSERT_LE(on_rung, below) << seed << " " << sixteenths;
      const std::int64_t between = makespan(std::exp2((sixteenths + 2) / 16));
      ASSERT_LE(between, on_rung) << seed << " " << sixteenths;
      faster += between < on_rung ? 1 : 0;
      below = on_rung;
    }
  }
  EXPECT_GT(faster, 20) << "memory above the last rung makes some schedules faster";
}

TEST(RandomSchedules, AreRefusedBelowTheFloor) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    ScheduleProblem problem = problem_of(seed);
    const std::vector<std::int64_t> floor = floors_of(problem);
    if (floor[0] == 0) continue;
    problem.tiers[0].budget_bytes = floor[0] - 1;
    const Schedule none = make_schedule(problem);
    EXPECT_EQ(none.short_tier, 0) << seed;
    EXPECT_EQ(none.floor_bytes[0], floor[0]) << seed;
  }
}

/// Tasks take other times than foreseen; an executor that knows only waits runs them.
TEST(RandomSchedules, RunToTheirEndsWhateverTasksTake) {
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    const ScheduleProblem problem = problem_of(seed);
    const std::vector<std::int64_t> floor = floors_of(problem);
    std::mt19937_64 random(seed);
    for (double factor : {1.0, 1.6}) {
      const ScheduleProblem limited = within(problem, floor, factor);
      const Schedule schedule = make_schedule(limited);
      const auto waits = list_waits(limited, schedule);
      std::vector<std::int64_t> cost;
      for (const ScheduleTask& task : limited.tasks)
        cost.push_back(1 + task.cost_ns * static_cast<std::int64_t>(20 + random() % 480) / 100);
      const std::vector<std::int64_t> end = replay(limited, schedule, waits, cost);
      Schedule run = schedule;  // has the times of the replay
      for (int t : schedule.order) {
        ASSERT_GE(end[t], 0) << seed << ": task " << t << " never ran";
        run.end_ns[t] = end[t];
        run.start_ns[t] = end[t] - cost[t];
      }
      // Soft tiers have no places, so nothing but the order limits them.
      for (std::size_t t = 0; t < limited.tiers.size(); ++t)
        if (limited.tiers[t].soft) run.arena_bytes[t] = std::int64_t{1} << 40;
      for (const std::string& fault : faults(limited, run))
        for (const char* grave : {"overlap", "overrun", "starts early", "share a queue"})
          EXPECT_EQ(fault.find(grave), std::string::npos) << seed << ": " << fault;
    }
  }
}

}  // namespace
}  // namespace strata::runtime
