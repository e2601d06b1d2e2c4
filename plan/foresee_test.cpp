// A foreseen step is what its Programs take in the order in which the engine starts them.
#include "plan/foresee.h"

#include <gtest/gtest.h>

#include <cmath>

#include "plan/choices.h"
#include "plan/find_plan.h"
#include "plan/testing/small_training.h"
#include "runtime/execute/trace.h"
#include "runtime/simulator/foreseen_times.h"
#include "runtime/simulator/simulated_ranks.h"

namespace strata::plan {
namespace {

using compile::ProgramKind;
using compile::StepPrograms;
using runtime::Queue;

class Foresee : public testing::Test {
 protected:
  [[nodiscard]] StepPrograms programs(const Choices& choices, int ranks = 1, int rank = 0) const {
    runtime::Plan plan = with_choices(small_frame(ranks), choices, model_.build);
    plan.evaluates = true;
    return find_plan({model_,
                      plan,
                      machine_,
                      {plan.mesh, comm::point_of(plan.mesh, rank)},
                      {runtime::SaveMemory::snapshot}})
        .programs;
  }
  static Choices on_disk() {
    Choices choices;
    choices.optimizer = Home::disk;
    return choices;
  }
  static double seconds_of(const Forecast& forecast, Queue queue) {
    return forecast.queues[static_cast<std::size_t>(queue)].all_busy_seconds();
  }
  static double serial_seconds(const runtime::Program& program, const machine::Machine& machine) {
    double ns = 0;
    for (const runtime::Instruction& in : program.instructions)
      ns += static_cast<double>(machine::foreseen_ns(machine, in.demand));
    return ns * 1e-9;
  }

  compile::TrainingModel model_ = small_training();
  machine::Machine machine_ = machine::cpu_machine(1);
};

TEST_F(Foresee, AStepOnOneQueueTakesAsLongAsItsInstructions) {
  Choices choices;
  choices.micro_steps = 4;
  const StepPrograms set = programs(choices);
  double seconds = 0;
  for (const zero::MicroStep& micro_step : zero::micro_steps(set.settings.plan))
    seconds += serial_seconds(set.train(micro_step.kind), machine_);
  const Forecast forecast = foresee(set, machine_);
  EXPECT_NEAR(forecast.step_seconds, seconds, 1e-9);
  EXPECT_NEAR(seconds_of(forecast, Queue::compute), seconds, 1e-9);
  EXPECT_EQ(forecast.bound_by, "cores");
  EXPECT_NEAR(forecast.bound_part, 1, 1e-6);
  EXPECT_FALSE(forecast.drain_seconds || forecast.evaluate_seconds);
  for (const double busy : forecast.queues[static_cast<std::size_t>(Queue::compute)].busy_seconds)
    EXPECT_GT(busy, 0);
}

TEST_F(Foresee, TransfersOverlapAndWhatIsLateRunsInTheNextStep) {
  machine_.disk.read_rate.value = 4e7;  // so slow that the drive binds
  machine_.disk.write_rate.value = 3e7;
  const StepPrograms set = programs(on_disk());
  ASSERT_NE(set.find(ProgramKind::drain), nullptr);
  const runtime::Program& step = set.train(zero::MicroStepKind::only);
  const Forecast forecast =
      foresee(set, machine_, {.drain = true, .evaluate = true, .snapshot = true});
  EXPECT_LT(forecast.step_seconds, serial_seconds(step, machine_));
  EXPECT_EQ(forecast.bound_by, "disk");
  EXPECT_GT(forecast.bound_part, 0.9);
  EXPECT_LE(forecast.bound_part, 1 + 1e-6);
  EXPECT_GT(forecast.queues[static_cast<std::size_t>(Queue::disk_read)].waited_seconds, 0);
  ASSERT_TRUE(forecast.drain_seconds && forecast.evaluate_seconds &&
              forecast.snapshot_step_seconds);
  EXPECT_LT(*forecast.drain_seconds, serial_seconds(*set.find(ProgramKind::drain), machine_));
  EXPECT_NEAR(*forecast.evaluate_seconds,
              serial_seconds(*set.find(ProgramKind::evaluate), machine_), 1e-6);
  EXPECT_GT(*forecast.snapshot_step_seconds, forecast.step_seconds);
}

TEST_F(Foresee, OneRankStandsForAllThatDoTheSame) {
  Choices choices;
  choices.sharding.stage = 3;
  choices.sharding.persistence_threshold_elements = 0;
  const StepPrograms first = programs(choices, 2, 0), second = programs(choices, 2, 1);
  const double one = foresee(first, machine_).step_seconds;
  const runtime::ForeseenTimes times(machine_, 2);
  const double both = foresee({{&first, &second}, {&times}, 2}).step_seconds;
  EXPECT_NEAR(both, one, 0.1 * one);
  EXPECT_EQ(foresee({{&first, &second}, {&times}, 2}).step_seconds, both);
  // Ranks on hosts of their own do not lend one another what they leave free.
  const runtime::ForeseenTimes of_two_hosts(machine_);
  EXPECT_NEAR(foresee({{&first, &second}, {&of_two_hosts}, 1}).step_seconds, both, 0.02 * both);
}

TEST_F(Foresee, ObserversSeeTheSimulatedSteps) {
  const StepPrograms set = programs(on_disk());
  runtime::TraceRecorder trace({.of = runtime::TraceOf::device, .capacity_per_queue = 10'000});
  (void)foresee(set, machine_, {.observers = {&trace}});
  EXPECT_NE(trace.events().find("\"name\": \"step 2\""), std::string::npos);
  EXPECT_NE(trace.events().find("waits for"), std::string::npos);
}

/// The shares that runtime/program/graph_problem.cpp gives the scheduler.
class ScheduledTimes final : public runtime::InstructionTimes {
 public:
  explicit ScheduledTimes(const machine::Machine& machine) : machine_(machine) {}
  [[nodiscard]] runtime::InstructionWork work_of(const runtime::Program& program,
                                                 int instruction) const override {
    const runtime::Instruction& in = program.instructions[static_cast<std::size_t>(instruction)];
    runtime::InstructionWork work{machine::foreseen_ns(machine_, in.demand), {}};
    const bool disk = in.queue == Queue::disk_read || in.queue == Queue::disk_write;
    if (disk) work.shares.push_back({1, 1});
    const double cores = machine_.processor.cores;
    work.shares.push_back({0, in.queue == Queue::compute ? 1 : (disk ? 0.2 : 1) / cores});
    return work;
  }

 private:
  machine::Machine machine_;
};

/// Equal but for waits for memory: the list has those for the bytes that it uses, and no others.
/// The equality where no memory is short: runtime/simulator/simulated_schedule_test.cpp.
TEST_F(Foresee, AScheduledProgramTakesWhatItsScheduleSays) {
  machine_.disk.read_rate.value = 2e8;
  machine_.disk.write_rate.value = 1e8;
  const StepPrograms set = programs(on_disk());
  const ScheduledTimes times(machine_);
  int compared = 0;
  for (const auto& [key, program] : set.programs) {
    if (!program.is_scheduled) continue;
    runtime::SimulatedRanks ranks(comm::data_mesh(1), 1, times);
    ranks.rank(0).borrow(program);
    ranks.rank(0).start(0, 0);
    ranks.rank(0).wait_all();
    EXPECT_NEAR(static_cast<double>(ranks.now_ns()), static_cast<double>(program.foreseen_ns),
                0.01 * static_cast<double>(program.foreseen_ns))
        << program.name;
    ++compared;
  }
  EXPECT_GE(compared, 2);
}

}  // namespace
}  // namespace strata::plan
