// Measures how good schedules are, against exhaustive search and against bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <random>
#include <utility>

#include "runtime/schedule/schedule.h"
#include "runtime/testing/random_problem.h"
#include "runtime/testing/schedule_checks.h"
#include "runtime/testing/schedule_search.h"

namespace strata::runtime {
namespace {

constexpr std::int64_t kMostNodes = 300'000;
constexpr std::uint64_t kSmallProblems = 400;

/// Budgets lie on a rung of the ladder.
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

ScheduleTask task(TaskKind kind, int queue, std::int64_t cost_ns, std::vector<int> after) {
  ScheduleTask made;
  made.kind = kind;
  made.queue = queue;
  made.cost_ns = cost_ns;
  made.after = std::move(after);
  return made;
}

/// Layers whose parameters are gathered before each of their two uses and whose gradients are
/// reduced; all collectives are in one order, with the next gather before the reduction.
struct ShardedStep {
  static constexpr std::int64_t kGatherNs = 500, kForwardNs = 1000, kReduceNs = 700;

  explicit ShardedStep(int layers) {
    problem.queues = 2;
    problem.tiers = {{"device", std::int64_t{1} << 40, 64, false, true}};
    std::vector<int> copy(layers);
    int before = -1;
    for (int layer = 0; layer < layers; ++layer) {
      const int gather = add(TaskKind::in, 1, kGatherNs, {});
      const int use = add(TaskKind::work, 0, kForwardNs, {gather});
      if (before >= 0) problem.tasks[use].after.insert(problem.tasks[use].after.begin(), before);
      copy[layer] = buffer(4096, {gather, use});
      before = use;
    }
    int gather = add(TaskKind::in, 1, kGatherNs, {});
    for (int layer = layers - 1; layer >= 0; --layer) {
      const int use = add(TaskKind::work, 0, 2 * kForwardNs, {before, gather});
      const int again = buffer(4096, {gather, use});
      problem.gaps.push_back({copy[layer], again, {gather}});
      if (layer > 0) gather = add(TaskKind::in, 1, kGatherNs, {});
      buffer(4096, {use, add(TaskKind::out, 1, kReduceNs, {use})});
      before = use;
    }
    bound_ns = kGatherNs + layers * 3 * kForwardNs + kReduceNs;
  }

  int add(TaskKind kind, int queue, std::int64_t cost_ns, std::vector<int> after) {
    problem.tasks.push_back(task(kind, queue, cost_ns, std::move(after)));
    problem.tasks.back().ordered = queue == 1;
    return static_cast<int>(problem.tasks.size()) - 1;
  }

  int buffer(std::int64_t bytes, std::vector<int> users) {
    std::sort(users.begin(), users.end());
    problem.buffers.push_back({0, bytes, std::move(users)});
    return static_cast<int>(problem.buffers.size()) - 1;
  }

  ScheduleProblem problem;
  std::int64_t bound_ns = 0;
};

TEST(ScheduleQuality, HidesGathersAndReductionsInTwiceTheFloor) {
  ShardedStep step(30);
  const Schedule wide = make_schedule(step.problem);
  EXPECT_EQ(wide.makespan_ns, step.bound_ns);
  step.problem.tiers[0].budget_bytes = 2 * wide.floor_bytes[0];
  const Schedule schedule = make_schedule(step.problem);
  EXPECT_TRUE(faults(step.problem, schedule).empty());
  EXPECT_LE(static_cast<double>(schedule.makespan_ns), 1.03 * static_cast<double>(step.bound_ns));
}

/// The backward pass of one of several ranks, reduction by reduction, after updates that differ
/// between ranks: what the ranks have in common must be in the same order on all of them.
class ReducedStep {
 public:
  static constexpr int kLayers = 8;

  explicit ReducedStep(std::uint64_t rank) {
    enum { compute, communication, disk_read };
    std::mt19937_64 random(rank);
    const auto some_ns = [&] { return 100 + static_cast<std::int64_t>(random() % 900); };
    problem.queues = 3;
    problem.tiers = {{"device", std::int64_t{1} << 40, 64, false, true}};
    std::vector<int> updates;
    for (int update = 0; update < 2 * kLayers; ++update)
      updates.push_back(
          add(TaskKind::work, compute, some_ns(), {add(TaskKind::in, disk_read, some_ns(), {})}));
    int before = add(TaskKind::work, compute, 1000, std::move(updates));
    for (int layer = 0; layer < kLayers; ++layer) {
      const int input = add(TaskKind::work, compute, 1000, {before});
      const int weight = add(TaskKind::work, compute, 1000, {before});
      common.insert(common.end(), {input, weight});
      add(TaskKind::out, communication, 300, {weight});
      problem.tasks.back().ordered = true;
      before = input;
    }
  }

  /// Returns the order of the common tasks, counted from the first of them.
  [[nodiscard]] std::vector<int> order_in_common() const {
    std::vector<int> order;
    for (int task : make_schedule(problem).order)
      if (std::ranges::find(common, task) != common.end()) order.push_back(task - common.front());
    return order;
  }

 private:
  int add(TaskKind kind, int queue, std::int64_t cost_ns, std::vector<int> after) {
    problem.tasks.push_back(task(kind, queue, cost_ns, std::move(after)));
    return static_cast<int>(problem.tasks.size()) - 1;
  }

  ScheduleProblem problem;
  std::vector<int> common;
};

TEST(ScheduleQuality, PutsOffNothingThatPeersWaitFor) {
  const std::vector<int> first = ReducedStep(0).order_in_common();
  for (std::uint64_t rank = 1; rank < 20; ++rank)
    EXPECT_EQ(ReducedStep(rank).order_in_common(), first) << rank;
}

/// A step that is cut after its control: updates of all layers in tiles on the disk, each read,
/// computed, written and its parameters uploaded, then forward and backward passes.
struct CutStep {
  static constexpr int kLayers = 24, kTiles = 4;
  static constexpr std::int64_t kTileBytes = 4096, kParameterBytes = 1024;

  CutStep(std::int64_t forward_ns, std::int64_t read_ns, std::int64_t update_ns,
          std::int64_t windows) {
    enum { compute, upload, disk_read, disk_write, host };
    problem.queues = 5;
    problem.resources = 1;  // the disk
    problem.tiers = {{"device", std::int64_t{1} << 40, 64, false, true},
                     {"pinned", windows * kTileBytes + 4 * kParameterBytes, 64, false, false}};
    std::int64_t disk_ns = 0;
    std::vector<std::vector<int>> uploads(kLayers);
    for (int layer = 0; layer < kLayers; ++layer)
      for (int tile = 0; tile < kTiles; ++tile) {
        const int read = add(TaskKind::in, disk_read, read_ns, {});
        const int update = add(TaskKind::work, host, update_ns, {read});
        const int write = add(TaskKind::out, disk_write, read_ns, {update});
        const int up = add(TaskKind::out, upload, read_ns / 8, {update});
        for (int t : {read, write}) problem.tasks[t].shares = {{0, 0.8}};
        problem.buffers.push_back({1, kTileBytes, {read, update, write}});
        problem.buffers.push_back({1, kParameterBytes, {update, up}});
        uploads[layer].push_back(up);
        disk_ns += 2 * read_ns * 8 / 10;
      }
    int before = -1;
    for (int layer = 0; layer < kLayers; ++layer) {
      std::vector<int> after = uploads[layer];
      if (before >= 0) after.push_back(before);
      before = add(TaskKind::work, compute, forward_ns, after);
    }
    for (int layer = 0; layer < kLayers; ++layer)
      before = add(TaskKind::work, compute, 2 * forward_ns, {before});
    bound_ns = kLayers * 2 * forward_ns +
               std::max({kLayers * forward_ns, disk_ns, kLayers * kTiles * update_ns}) + read_ns +
               update_ns + read_ns / 8;
  }

  int add(TaskKind kind, int queue, std::int64_t cost_ns, std::vector<int> after) {
    problem.tasks.push_back(task(kind, queue, cost_ns, std::move(after)));
    return static_cast<int>(problem.tasks.size()) - 1;
  }

  ScheduleProblem problem;
  std::int64_t bound_ns = 0;  ///< backward + max(forward, updates) + the first tile's transfers
};

TEST(ScheduleQuality, RunsUpdatesWhileTheNextForwardPassRuns) {
  double worst = 0;
  for (std::int64_t read_ns : {1'000, 4'000, 10'000, 16'000})
    for (std::int64_t update_ns : {500, 4'000, 12'000})
      for (std::int64_t windows : {4, 8, 32}) {
        const CutStep step(40'000, read_ns, update_ns, windows);
        const Schedule schedule = make_schedule(step.problem);
        EXPECT_TRUE(faults(step.problem, schedule).empty());
        const double ratio =
            static_cast<double>(schedule.makespan_ns) / static_cast<double>(step.bound_ns);
        worst = std::max(worst, ratio);
        EXPECT_LE(ratio, 1.03) << read_ns << " " << update_ns << " " << windows;
      }
  std::cout << "worst " << worst << " of the bound\n";
}

}  // namespace
}  // namespace strata::runtime
