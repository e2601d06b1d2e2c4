// Tests the device executor on the simulated device: streams are threads that only waits hold back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>

#include "core/error.h"
#include "kernels/cuda/testing/simulated/simulated_device.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/lockstep.h"
#include "runtime/program/lower.h"
#include "runtime/testing/relay_rank.h"
#include "runtime/testing/small_model.h"
#include "runtime/testing/thread_ranks.h"

namespace strata::runtime {
namespace {

using cuda::SimulatedDevice;
using cuda::ThreadOrder;

std::vector<float> alone(const RelayRank::Options& options, int runs, int* replays = nullptr) {
  RelayRank rank(nullptr, options);
  for (int i = 0; i < runs; ++i) rank.start();
  rank.executor().wait_all();
  if (replays != nullptr) *replays = rank.device().replays();
  return rank.results();
}

TEST(StreamExecutor, ComputesWhatTheListSays) {
  RelayRank rank(nullptr, {});
  for (float& v : rank.values("start")) v = 1;
  for (int i = 0; i < kLinks; ++i)
    for (float& v : rank.values("shard." + std::to_string(i))) v = static_cast<float>(10 * i);
  for (int run = 1; run <= 5; ++run) {
    rank.start();
    rank.executor().wait(run - 1);
    const auto expected = static_cast<float>(1 + run * (0 + 10 + 20 + 30));
    for (float v : rank.values("start")) ASSERT_EQ(v, expected);
    for (float v : rank.values("result")) ASSERT_EQ(v, expected);
  }
}

TEST(StreamExecutor, RecordingsChangeNoBits) {
  int replays = 0;
  const std::vector<float> plain = alone({.recordings = Recordings::off}, 6, &replays);
  EXPECT_EQ(replays, 0);
  for (std::uint64_t delays = 1; delays <= 20; ++delays) {
    ASSERT_EQ(alone({.recordings = Recordings::off, .delays = delays}, 6), plain);
    ASSERT_EQ(alone({.delays = delays}, 6, &replays), plain);
    EXPECT_EQ(replays, 5);  // the first run is not recorded
  }
}

TEST(StreamExecutor, RanksThatShareADeviceMeetOnTheHost) {
  constexpr int kWorld = 3;
  for (const Recordings recordings : {Recordings::off, Recordings::on})
    for (std::uint64_t delays : {0, 1, 2, 3}) {
      const auto errors = run_ranks(kWorld, [&](comm::Communicator& host) {
        RelayRank rank(&host, {.recordings = recordings, .delays = delays});
        for (float& v : rank.values("start")) v = 1;
        for (int i = 0; i < kLinks; ++i)
          for (float& v : rank.values("shard." + std::to_string(i)))
            v = static_cast<float>(10 * i + host.rank());
        for (int i = 0; i < 4; ++i) rank.start();
        rank.executor().wait_all();
        const auto sum = rank.values("start");
        for (std::size_t i = 0; i < sum.size(); ++i) {
          const auto owner = static_cast<float>(i / (kElements / kWorld));
          ASSERT_EQ(sum[i], 1 + 4 * (60 + kLinks * owner)) << i;
        }
        EXPECT_EQ(rank.device().replays() > 0, recordings == Recordings::on);
        rank.communicator().close();
        host.close();
      });
      for (const std::string& error : errors) EXPECT_EQ(error, "");
    }
}

/// Fails at one instruction.
class Fault final : public Observer {
 public:
  explicit Fault(std::string label) : label_(std::move(label)) {}
  void begin(const Program& program, int instruction) override {
    if (program.instructions[static_cast<std::size_t>(instruction)].label == label_)
      throw std::runtime_error("boom");
  }
  void end(const Program&, int) override {}

 private:
  std::string label_;
};

TEST(StreamExecutor, AnErrorAnywhereEndsEveryRankAndNamesTheInstruction) {
  for (const std::string label : {"copy start", "gather 2", "add 3", "reduce", "keep sum"}) {
    const auto errors = run_ranks(2, [&](comm::Communicator& host) {
      Fault fault(host.rank() == 1 ? label : "");
      RelayRank rank(&host, {.observer = &fault});
      for (int i = 0; i < 3; ++i) rank.start();
      rank.executor().wait_all();
    });
    for (const std::string& error : errors)
      EXPECT_NE(error.find("instruction '" + label + "' failed: boom"), std::string::npos) << error;
  }
}

/// The steps whose Programs were taken up, in order.
class BegunSteps final : public Observer {
 public:
  void begin_program(const Program&, std::int64_t step) override { steps.push_back(step); }
  void begin(const Program&, int) override {}
  void end(const Program&, int) override {}
  std::vector<std::int64_t> steps;
};

// Enqueuing is a step ahead of what the device runs.
TEST(StreamExecutor, ARunBeginsWhenTheOneBeforeHasEnded) {
  using Steps = std::vector<std::int64_t>;
  BegunSteps begun;
  RelayRank rank(nullptr, {.observer = &begun});
  rank.start(7);
  EXPECT_EQ(begun.steps, Steps{7});
  rank.start(8);
  EXPECT_EQ(begun.steps, Steps{7}) << "nobody has waited for step 7";
  rank.start(9);  // two may be under way, so it waits for step 7
  EXPECT_EQ(begun.steps, (Steps{7, 8}));
  rank.executor().wait(1);
  EXPECT_EQ(begun.steps, (Steps{7, 8, 9}));
  rank.executor().wait_all();
  EXPECT_EQ(begun.steps, (Steps{7, 8, 9}));
  rank.start(10);
  EXPECT_EQ(begun.steps, (Steps{7, 8, 9, 10})) << "nothing is under way";
  rank.executor().wait_all();
}

TEST(StreamExecutor, AnErrorWhileItRecordsIsAnErrorLikeOthers) {
  class LateFault final : public Observer {
   public:
    void starting(const Program&, std::int64_t) override { ++runs; }
    void begin(const Program& program, int instruction) override {
      if (runs == 2 &&
          program.instructions[static_cast<std::size_t>(instruction)].label == "gather 2")
        throw std::runtime_error("boom");
    }
    void end(const Program&, int) override {}
    int runs = 0;
  };
  LateFault fault;
  RelayRank rank(nullptr, {.observer = &fault});
  rank.start();
  try {
    rank.start();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("instruction 'gather 2' failed: boom"),
              std::string::npos)
        << error.what();
  }
}

/// Fails as a library does that cannot be captured: only while the second run is enqueued.
class CaptureFault final : public Observer {
 public:
  explicit CaptureFault(const FaultyRecorder* const& device) : device_(device) {}
  void begin(const Program& program, int instruction) override {
    if (device_ != nullptr && device_->begun > 0 && !thrown_ &&
        program.instructions[static_cast<std::size_t>(instruction)].label == "add 2") {
      thrown_ = true;
      throw HostError("the library allocates");
    }
  }
  void end(const Program&, int) override {}

 private:
  const FaultyRecorder* const& device_;
  bool thrown_ = false;
};

TEST(StreamExecutor, ARecordingThatFailsLeavesPlainRunsOfTheSameBits) {
  const std::vector<float> expected = alone({.recordings = Recordings::off}, 6);
  for (const RecordingFault fault :
       {RecordingFault::begin, RecordingFault::end, RecordingFault::none}) {
    const FaultyRecorder* device = nullptr;
    CaptureFault capture(device);
    RelayRank rank(nullptr, {.delays = 7,
                             .observer = fault == RecordingFault::none ? &capture : nullptr,
                             .fault = fault});
    device = &rank.device();
    for (int i = 0; i < 6; ++i) rank.start();
    rank.executor().wait_all();
    EXPECT_EQ(rank.results(), expected);
    EXPECT_EQ(rank.device().replays(), 0);
    EXPECT_EQ(rank.device().begun, 1) << "it records again and again";
    const std::vector<std::string> notes = rank.executor().notes();
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find("recording 'relay' failed: " +
                            std::string(fault == RecordingFault::begin ? "cudaStreamBeginCapture"
                                        : fault == RecordingFault::end
                                            ? "cudaGraphInstantiate"
                                            : "instruction 'add 2' failed: the library allocates")),
              std::string::npos)
        << notes[0];
  }
}

TEST(StreamExecutor, ForgottenRecordingsAreMadeAgain) {
  int replays = 0;
  const std::vector<float> expected = alone({}, 4, &replays);
  RelayRank rank(nullptr, {});
  for (int i = 0; i < 2; ++i) rank.start();
  rank.executor().forget_recordings();
  for (int i = 0; i < 2; ++i) rank.start();
  rank.executor().wait_all();
  EXPECT_EQ(rank.results(), expected);
  EXPECT_EQ(rank.device().replays(), replays);
}

/// Returns a Program of the first instruction that is no collective.
Program without_collectives(const Program& program) {
  Program local = program;
  local.name = "local";
  const auto first = std::ranges::find_if(
      local.instructions, [](const Instruction& in) { return !in.collective.has_value(); });
  Instruction one = *first;
  one.waits.clear();
  local.instructions = {one};
  return local;
}

/// A rank that stops recording alone would run collectives plainly that others replay.
TEST(StreamExecutor, RanksAgreeOnRecordingProgramsWithoutCollectivesToo) {
  for (const int refused : {1, 2}) {  // that all can record, that all have recorded
    RelayRank rank(nullptr, {});
    int asked = 0;
    dynamic_cast<StreamCommunicator&>(rank.communicator()).peers_say = [&](bool mine) {
      return ++asked != refused && mine;
    };
    const int local = rank.executor().load(without_collectives(rank.executor().program(0)));
    for (int i = 0; i < 3; ++i) rank.executor().start(local, i);
    EXPECT_EQ(asked, refused);
    for (int i = 0; i < 3; ++i) rank.start();
    rank.executor().wait_all();
    EXPECT_EQ(asked, refused == 1 ? 3 : 2) << "another Program is recorded after a refusal to try";
    EXPECT_EQ(rank.device().replays() > 0, refused == 1);
  }
}

TEST(StreamExecutor, RefusesToGoOnAfterAnError) {
  Fault fault("add 1");
  RelayRank rank(nullptr, {.observer = &fault});
  EXPECT_THROW(rank.start(), Error);
  EXPECT_THROW(rank.start(), Error);
  EXPECT_THROW(rank.executor().wait_all(), Error);
}

TEST(StreamExecutor, WaitingForTheDeviceEndsWhenAPeerFails) {
  const auto errors = run_ranks(2, [&](comm::Communicator& host) {
    if (host.rank() == 1) throw DataError("token 7 is out of range");
    RelayRank rank(&host, {});
    rank.start();
    rank.executor().wait_all();
  });
  EXPECT_NE(errors[0].find("token 7 is out of range"), std::string::npos) << errors[0];
}

TEST(StreamExecutor, AFalsePredicateCompletesWithoutEffect) {
  for (const Recordings recordings : {Recordings::off, Recordings::on}) {
    RelayRank rank(nullptr, {.recordings = recordings});
    Program program = rank.executor().program(0);
    Operand flag;
    for (Instruction& in : program.instructions)
      if (in.label == "gather 0") flag = in.inputs[0];
    for (Instruction& in : program.instructions)
      if (in.label == "keep sum") in.predicate = flag;  // its first four bytes
    const int handle = rank.executor().load(program);
    for (std::uint32_t apply : {0u, 1u, 0u, 1u}) {
      std::memcpy(rank.values("shard.0").data(), &apply, sizeof apply);
      const auto start = rank.values("start");
      const std::vector<float> before(start.begin(), start.end());
      rank.executor().start(handle, 0);
      rank.executor().wait_all();
      EXPECT_EQ(std::vector<float>(start.begin(), start.end()) == before, apply == 0);
    }
  }
}

TEST(StreamExecutor, RefusesAPredicateThatItsOperationDoesNotKnow) {
  RelayRank rank(nullptr, {});
  Program program = rank.executor().program(0);
  for (Instruction& in : program.instructions)
    if (in.label == "add 1") in.predicate = in.inputs[0];
  try {
    rank.executor().load(program);
    ADD_FAILURE() << "loaded";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("add 1"), std::string::npos) << error.what();
  }
}

TEST(StreamExecutor, TellsWhenTheDeviceWorkedOnEachInstruction) {
  class Times final : public Observer {
   public:
    [[nodiscard]] bool wants_device_times() const override { return true; }
    void begin(const Program&, int) override {}
    void end(const Program&, int) override {}
    void executed(const Program& program, int instruction, std::int64_t begin_ns,
                  std::int64_t end_ns) override {
      EXPECT_LE(begin_ns, end_ns);
      const auto queue = program.instructions[static_cast<std::size_t>(instruction)].queue;
      std::int64_t& last = last_ns[static_cast<int>(queue)];
      EXPECT_LE(last, begin_ns) << "instructions of one queue overlap";
      last = end_ns;
      ++calls;
    }
    std::array<std::int64_t, kQueues> last_ns{};
    std::size_t calls = 0;
  };
  Times times;
  RelayRank rank(nullptr, {.observer = &times});
  for (int i = 0; i < 3; ++i) rank.start();
  rank.executor().wait_all();
  EXPECT_EQ(times.calls, 3 * rank.executor().program(0).instructions.size());
  EXPECT_EQ(rank.device().replays(), 0);
}

/// An addition into its own input begins with the old sum on both sides.
TEST(LockstepExecutor, ResultsThatAreWrittenOverAnInputKeepIt) {
  Graph graph;
  graph.blocks = {"sum"};
  const auto add_value = [&](const char* name) {
    Value value;
    value.name = name;
    value.type = kernels::TensorType(DType::f32, kernels::Shape{kElements});
    value.storage = Storage::persistent;
    return graph.add_value(std::move(value));
  };
  const ValueId sum = add_value("sum"), x = add_value("x");
  graph.apply_into("accumulate", {sum, x}, {graph.next_version(sum)}, {}, 0, Pass::forward, "add");
  PersistentLayout layout;
  layout.add_all(graph);
  SimulatedDevice device(ThreadOrder::forward);
  Program program =
      lower(std::move(graph), layout, {"sum", machine::typical_machine(device.capabilities())});
  Arena arena(device, kernels::MemoryKind::device, program.arena_bytes[0]);
  const auto values = [&](const char* name) {
    return std::span(reinterpret_cast<float*>(arena.base() + layout.find(name).offset_bytes),
                     static_cast<std::size_t>(kElements));
  };
  std::ranges::fill(values("sum"), 3.0f);
  std::ranges::fill(values("x"), 2.0f);
  ExecutorParts parts;
  parts.arenas[static_cast<int>(Tier::device)] = &arena;
  kernels::CpuDevice cpu(1);
  LockstepReport report;
  const auto executor = make_lockstep_executor(std::move(parts), device, cpu, report);
  const int handle = executor->load(std::move(program));
  for (int run = 0; run < 2; ++run) executor->start(handle, run);
  for (const float value : values("sum")) ASSERT_EQ(value, 7);
  ASSERT_EQ(report.rows.size(), 1u) << report.to_string();
  EXPECT_EQ(report.rows.begin()->second.results, 2);
}

}  // namespace
}  // namespace strata::runtime
