// The simulator and the scheduler agree on time: where a schedule waits for no memory, its list run
// by queues and waits ends when the scheduler said.
#include <gtest/gtest.h>

#include "runtime/simulator/simulated_ranks.h"
#include "runtime/testing/hand_made.h"
#include "runtime/testing/random_problem.h"
#include "runtime/testing/schedule_replay.h"

namespace strata::runtime {
namespace {

/// Task i of the problem has the label "i", and number i of `order` is the instruction that does
/// it.
Program program_of(const ScheduleProblem& problem, const Schedule& schedule) {
  const std::vector<std::vector<int>> waits = list_waits(problem, schedule);
  std::vector<std::int32_t> place(problem.tasks.size(), -1);
  for (std::size_t i = 0; i < schedule.order.size(); ++i)
    place[static_cast<std::size_t>(schedule.order[i])] = static_cast<std::int32_t>(i);
  std::vector<Instruction> list;
  for (const int task : schedule.order) {
    const int queue = problem.tasks[static_cast<std::size_t>(task)].queue;
    Instruction in = hand_made(static_cast<Queue>(queue), std::to_string(task));
    for (const int other : waits[static_cast<std::size_t>(task)])
      if (problem.tasks[static_cast<std::size_t>(other)].queue != queue)
        in.waits.push_back(place[static_cast<std::size_t>(other)]);
    list.push_back(std::move(in));
  }
  return hand_made("scheduled", std::move(list));
}

/// Ends of the tasks of a problem.
class Ends final : public Observer {
 public:
  explicit Ends(std::size_t tasks) : ns(tasks, -1) {}
  void begin(const Program&, int) override {}
  void end(const Program&, int) override {}
  void executed(const Program& program, int i, std::int64_t, std::int64_t end_ns) override {
    ns[std::stoul(program.instructions[static_cast<std::size_t>(i)].label)] = end_ns;
  }
  std::vector<std::int64_t> ns;
};

TEST(SimulatedSchedule, EndsWhenTheSchedulerSaid) {
  std::mt19937_64 random(17);
  for (int trial = 0; trial < 300; ++trial) {
    ScheduleProblem problem =
        random_problem(random, {.work = 2 + trial % 40, .gaps = false, .soft = false});
    for (ScheduleTier& tier : problem.tiers) tier.ladder = false;  // with less memory: waits for it
    const Schedule schedule = make_schedule(problem);
    std::map<std::string, InstructionWork> work;
    for (std::size_t t = 0; t < problem.tasks.size(); ++t)
      work[std::to_string(t)] = {problem.tasks[t].cost_ns, problem.tasks[t].shares};
    const HandMadeTimes times(std::move(work));
    SimulatedRanks ranks(comm::data_mesh(1), 1, times);
    Ends ends(problem.tasks.size());
    ranks.rank(0).add_observer(ends);
    ranks.rank(0).load(program_of(problem, schedule));
    ranks.rank(0).start(0, 0);
    ranks.rank(0).wait_all();
    ASSERT_EQ(ends.ns, schedule.end_ns) << "trial " << trial;
    EXPECT_EQ(ranks.now_ns(), schedule.makespan_ns);
  }
}

}  // namespace
}  // namespace strata::runtime
