// How good schedules are: against exhaustive search, and against what is possible at most.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>

#include "runtime/schedule.h"
#include "runtime/testing/schedule_checks.h"
#include "runtime/testing/schedule_search.h"

namespace strata::runtime {
namespace {

constexpr std::int64_t kMostNodes = 300'000;
constexpr std::uint64_t kSmallProblems = 400;

/// Budgets lie on a rung of the ladder, for one between two rungs is used up to the lower one.
TEST(ScheduleQuality, IsNearTheBestOfAllSchedulesOfSmallProblems) {
  double sum = 0, worst = 1;
  int complete = 0, compared = 0;
  for (std::uint64_t seed = 1; seed <= kSmallProblems; ++seed) {
    std::mt19937_64 random(seed);
    RandomProblemSize size;
    size.work = 2 + static_cast<int>(random() % 4);
    size.shares = false;
    size.soft = random() % 3 == 0;
    size.ordered = random() % 2 == 0;
    ScheduleProblem problem = random_problem(random, size);
    const std::vector<std::int64_t> floor = make_schedule(problem).floor_bytes;
    const double factor = std::exp2(0.25 * static_cast<double>(random() % 6));

    for (std::size_t t = 0; t < floor.size(); ++t)
      problem.tiers[t].budget_bytes = static_cast<std::int64_t>(
          std::ceil(static_cast<double>(floor[t]) * (t == 0 ? factor : 2 * factor)));
    const Schedule schedule = make_schedule(problem);
    for (std::size_t t = 0; t < floor.size(); ++t)
      problem.tiers[t].budget_bytes =
          std::max(problem.tiers[t].budget_bytes, schedule.floor_bytes[t]);
    const SearchResult best = search_all(problem, schedule.makespan_ns, kMostNodes);
    ++compared;
    complete += best.complete ? 1 : 0;
    const double ratio =
        static_cast<double>(schedule.makespan_ns) / static_cast<double>(best.makespan_ns);
    sum += ratio;
    if (ratio > 1.15) std::cout << "seed " << seed << ": " << ratio << " at " << factor << "\n";
    worst = std::max(worst, ratio);
  }
  std::cout << "mean " << sum / compared << ", worst " << worst << ", searched to the end "
            << complete << " of " << compared << "\n";
  EXPECT_GE(complete, compared * 9 / 10);
  EXPECT_LE(sum / compared, 1.03);
  EXPECT_LE(worst, 1.25);
}

}  // namespace
}  // namespace strata::runtime
