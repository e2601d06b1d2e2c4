// Checks that times belong to the right instructions and steps, whichever queue is ahead.
#include "runtime/execute/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "kernels/cpu/cpu_stream.h"
#include "runtime/execute/executor.h"
#include "runtime/program/lower.h"
#include "runtime/testing/lone_rank.h"
#include "runtime/testing/small_model.h"
#include "runtime/testing/thread_ranks.h"

namespace strata::runtime {
namespace {

/// Makes a Program of a gather that a computation reads.
Program two_queues(const std::string& name) {
  Program program;
  program.name = name;
  for (const Queue queue : {Queue::communication, Queue::compute}) {
    Instruction in;
    in.operation = &kernels::find_operation("copy");
    in.queue = queue;
    in.label = std::string(name_of(queue));
    program.instructions.push_back(in);
  }
  return program;
}

constexpr int kGather = 0, kCompute = 1;

std::int64_t runs_of(const ProfileRecorder& profile, int instruction) {
  std::int64_t runs = 0;
  for (const InstructionTime& time : profile.instructions())
    if (time.instruction == instruction) runs += time.runs;
  return runs;
}

TEST(Profile, AQueueThatRunsAheadIsCountedInItsOwnSteps) {
  ProfileRecorder profile(TraceOf::queues, 2);
  const Program program = two_queues("train.only");
  const auto run = [&](int instruction) {
    profile.begin(program, instruction);
    profile.end(program, instruction);
  };
  profile.starting(program, 0);
  run(kGather);
  for (std::int64_t step = 1; step < 5; ++step) {
    profile.starting(program, step);
    run(kGather);  // belongs to this step, while computation is one step behind
    run(kCompute);
  }
  run(kCompute);
  EXPECT_EQ(profile.steps(), 3);
  EXPECT_EQ(runs_of(profile, kGather), 3);
  EXPECT_EQ(runs_of(profile, kCompute), 3);
}

TEST(Profile, OfADeviceOnlyItsOwnTimesCount) {
  ProfileRecorder profile(TraceOf::device, 0);
  const Program program = two_queues("train.only"), evaluation = two_queues("evaluate");
  EXPECT_TRUE(profile.wants_device_times());
  for (const Program* each : {&program, &evaluation}) {
    profile.starting(*each, 0);
    for (const int instruction : {kGather, kCompute}) {
      profile.begin(*each, instruction);
      profile.end(*each, instruction);
    }
    profile.executed(*each, kGather, 1000, 5000);
    profile.executed(*each, kCompute, 3000, 4000);
  }
  EXPECT_EQ(profile.steps(), 1);
  EXPECT_EQ(runs_of(profile, kGather), 1);
  EXPECT_EQ(profile.wall_ns(), 1000);
  EXPECT_EQ(profile.queues()[static_cast<int>(Queue::communication)].busy_ns, 4000);
  EXPECT_EQ(profile.queues()[static_cast<int>(Queue::compute)].busy_ns, 1000);
}

/// Makes one instruction take 20 ms.
class Slow final : public Observer {
 public:
  explicit Slow(std::string label) : label_(std::move(label)) {}
  void begin(const Program& program, int instruction) override {
    if (program.instructions[static_cast<std::size_t>(instruction)].label == label_)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  void end(const Program&, int) override {}

 private:
  std::string label_;
};

TEST(Profile, AnExecutorTellsWhatIsSlowAndWhatWaitsForIt) {
  constexpr std::int64_t kElements = 24 * 64;
  const auto errors = run_ranks(1, [&](comm::Communicator& communicator) {
    PersistentLayout layout;
    Graph graph = relay(3, kElements, 1);
    layout.add_all(graph);
    Program program =
        lower(std::move(graph), layout, {"relay", {}, comm::MeshSeat::of(communicator.seat())});
    Arena arena("device", program.arena_bytes[0], ArenaKind::private_memory);
    communicator.register_arena({arena.base(), arena.bytes(), arena.memfd()});
    kernels::CpuDevice device(1);
    kernels::CpuStream compute(device), communication(device);
    ProfileRecorder profile(TraceOf::queues, 1);
    Slow slow("gather 1");
    ExecutorParts parts;
    parts.arenas[static_cast<int>(Tier::device)] = &arena;
    parts.communicators.add(comm::MeshAxis::data, communicator);
    parts.observers = {&profile, &slow};
    const auto executor =
        make_cpu_executor(std::move(parts), kernels::cpu_kernels(), compute, communication);
    const int handle = executor->load(std::move(program));
    for (std::int64_t step = 0; step < 3; ++step) executor->start(handle, step);
    executor->wait_all();
    EXPECT_EQ(profile.steps(), 2);
    const std::vector<InstructionTime> times = profile.instructions();
    EXPECT_EQ(times.size(), executor->program(handle).instructions.size());
    for (const InstructionTime& time : times) {
      EXPECT_EQ(time.runs, 2);
      const std::string& label =
          time.program->instructions[static_cast<std::size_t>(time.instruction)].label;
      if (label == "gather 1")
        EXPECT_GE(time.ns, 40'000'000);
      else
        EXPECT_LT(time.ns, 20'000'000) << label;
    }
    const auto queues = profile.queues();
    const QueueTime& gathers = queues[static_cast<int>(Queue::communication)];
    EXPECT_GE(gathers.busy_ns, 40'000'000);
    EXPECT_GT(gathers.waited_ns, 10'000'000);
    EXPECT_LE(gathers.waited_ns, profile.wall_ns());
    communicator.close();
  });
  EXPECT_EQ(errors, std::vector<std::string>{""});
}

}  // namespace
}  // namespace strata::runtime
