#include "runtime/schedule.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::runtime {
namespace {

ScheduleTask task(TaskKind kind, int queue, std::int64_t cost_ns, std::vector<int> after = {}) {
  ScheduleTask made;
  made.kind = kind;
  made.queue = queue;
  made.cost_ns = cost_ns;
  made.after = std::move(after);
  return made;
}

/// `uses` of 100 ns on queue 0, each of a value of 64 bytes that takes 100 ns to bring on queue 1.
ScheduleProblem stream_of_values(int uses, std::int64_t budget_bytes) {
  ScheduleProblem problem;
  problem.queues = 2;
  problem.tiers.push_back({"device", budget_bytes, 64, false});
  for (int i = 0; i < uses; ++i) {
    problem.tasks.push_back(task(TaskKind::in, 1, 100));
    problem.tasks.push_back(task(TaskKind::work, 0, 100, {2 * i}));
    problem.buffers.push_back({0, 64, {2 * i, 2 * i + 1}});
  }
  return problem;
}

TEST(MakeSchedule, RefusesABudgetBelowTheFloorAndNamesTierBudgetAndFloor) {
  EXPECT_EQ(make_schedule(stream_of_values(4, 64)).floor_bytes[0], 64);
  try {
    make_schedule(stream_of_values(4, 63));
    FAIL() << "accepted";
  } catch (const OutOfMemory& error) {
    EXPECT_NE(std::string(error.what()).find("device"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("63"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("64"), std::string::npos);
  }
}

}  // namespace
}  // namespace strata::runtime
