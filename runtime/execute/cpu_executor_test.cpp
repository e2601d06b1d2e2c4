// Checks that timing changes nothing and that a failure leaves nobody waiting. Observers stand in
// for slow threads and failing instructions.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "kernels/cpu/cpu_stream.h"
#include "runtime/execute/executor.h"
#include "runtime/passes/order.h"
#include "runtime/program/lower.h"
#include "runtime/testing/small_model.h"
#include "runtime/testing/thread_ranks.h"

namespace strata::runtime {
namespace {

constexpr int kLinks = 4;
constexpr std::int64_t kElements = 24 * 64;

/// Sleeps for a random time before most instructions.
class RandomDelays final : public Observer {
 public:
  RandomDelays(std::uint64_t seed, int rank)
      : key_(seed * 1000 + static_cast<std::uint64_t>(rank)) {}
  void begin(const Program&, int instruction) override {
    std::uint64_t h = (key_ + static_cast<std::uint64_t>(instruction) * 7919 + calls_++ * 104729) *
                      0x9E3779B97F4A7C15ull;
    h ^= h >> 31;
    if (h % 3 != 0) std::this_thread::sleep_for(std::chrono::microseconds(h % 400));
  }
  void end(const Program&, int) override {}

 private:
  std::uint64_t key_;
  std::atomic<std::uint64_t> calls_{0};
};

/// Fails at one instruction, and counts the instructions that begin.
class Fault final : public Observer {
 public:
  explicit Fault(std::string label) : label_(std::move(label)) {}
  void begin(const Program& program, int instruction) override {
    ++begun;
    if (program.instructions[static_cast<std::size_t>(instruction)].label == label_)
      throw std::runtime_error("boom");
  }
  void end(const Program&, int) override {}
  std::atomic<int> begun{0};

 private:
  std::string label_;
};

/// One rank of a relay: arena, streams and executor. Peers on threads read one another's arenas, so
/// if ranks may fail, all must `meet` before any arena is freed.
class RelayRank {
 public:
  RelayRank(comm::Communicator& communicator, Observer* observer, std::barrier<>* meet = nullptr)
      : rank_(communicator.rank()), meet_(meet) {
    Graph graph = relay(kLinks, kElements, communicator.size());
    TransferLimits limits;
    limits.prefetch_elements = 2 * kElements;
    hoist_gathers(graph, limits);
    layout_.add_all(graph);
    Program program =
        lower(std::move(graph), layout_, {"relay", {}, comm::MeshSeat::of(communicator.seat())});
    arena_ = Arena("device", program.arena_bytes[0], ArenaKind::private_memory);
    communicator.register_arena({arena_.base(), arena_.bytes(), arena_.memfd()});
    fill("start", 0.1f);
    for (int i = 0; i < kLinks; ++i)
      fill("shard." + std::to_string(i), 1.0f / static_cast<float>(3 + i));
    ExecutorParts parts;
    parts.arenas[static_cast<int>(Tier::device)] = &arena_;
    parts.communicators.add(comm::MeshAxis::data, communicator);
    if (observer != nullptr) parts.observers.push_back(observer);
    executor_ =
        make_cpu_executor(std::move(parts), kernels::cpu_kernels(), compute_, communication_);
    handle_ = executor_->load(std::move(program));
  }

  ~RelayRank() {
    executor_.reset();
    if (meet_ != nullptr) meet_->arrive_and_wait();
  }

  Executor& executor() { return *executor_; }
  void start() { executor_->start(handle_, 0); }
  [[nodiscard]] std::span<float> values(const std::string& name) const {
    const PersistentValue& value = layout_.find(name);
    return {reinterpret_cast<float*>(arena_.base() + value.offset_bytes),
            static_cast<std::size_t>(value.type.shape.elements())};
  }

 private:
  void fill(const std::string& name, float factor) {
    float x = factor * static_cast<float>(rank_ + 1);
    for (float& value : values(name)) value = x += 0.37f * factor;
  }

  int rank_;
  std::barrier<>* meet_;
  kernels::CpuDevice device_{1};
  kernels::CpuStream compute_{device_}, communication_{device_};
  PersistentLayout layout_;
  Arena arena_;
  std::unique_ptr<Executor> executor_;
  int handle_ = 0;
};

/// Returns the bits of every rank's "start" and "result" after `runs` runs started without a pause.
std::vector<float> relay_result(int world, int runs, std::uint64_t seed) {
  std::vector<float> all;
  std::mutex mutex;
  std::vector<std::vector<float>> of_rank(static_cast<std::size_t>(world));
  const auto errors = run_ranks(world, [&](comm::Communicator& communicator) {
    RandomDelays delays(seed, communicator.rank());
    RelayRank rank(communicator, seed == 0 ? nullptr : &delays);
    for (int i = 0; i < runs; ++i) rank.start();
    rank.executor().wait_all();
    auto& mine = of_rank[static_cast<std::size_t>(communicator.rank())];
    for (const char* name : {"start", "result"})
      for (float value : rank.values(name)) mine.push_back(value);
    communicator.close();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  for (const auto& mine : of_rank) all.insert(all.end(), mine.begin(), mine.end());
  return all;
}

TEST(CpuExecutor, ComputesWhatTheListSays) {
  constexpr int kWorld = 2;
  std::vector<std::string> errors = run_ranks(kWorld, [](comm::Communicator& communicator) {
    RelayRank rank(communicator, nullptr);
    for (float& v : rank.values("start")) v = 1;
    for (int i = 0; i < kLinks; ++i)
      for (float& v : rank.values("shard." + std::to_string(i)))
        v = static_cast<float>(10 * i + communicator.rank());
    rank.start();
    rank.start();
    rank.executor().wait_all();
    // "start" is its first value plus twice the sum over links, in each half of the elements.
    const float low = 1 + 2 * (0 + 10 + 20 + 30), high = low + 2 * kLinks;
    const auto sum = rank.values("start");
    EXPECT_EQ(sum.front(), low);
    EXPECT_EQ(sum.back(), high);
    const auto result = rank.values("result");
    EXPECT_EQ(result.front(), kWorld * (communicator.rank() == 0 ? low : high));
    communicator.close();
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

TEST(CpuExecutor, GivesTheSameBitsWhateverTheDelays) {
  for (int world : {2, 3}) {
    const std::vector<float> expected = relay_result(world, 4, 0);
    for (std::uint64_t seed = 1; seed <= 40; ++seed)
      ASSERT_EQ(relay_result(world, 4, seed), expected) << "world " << world << " seed " << seed;
  }
}

/// Holds one instruction until another one has begun in a later run.
class Meeting final : public Observer {
 public:
  Meeting(std::string waits, std::string comes)
      : waits_(std::move(waits)), comes_(std::move(comes)) {}
  void begin(const Program& program, int instruction) override {
    const std::string& label = program.instructions[static_cast<std::size_t>(instruction)].label;
    std::unique_lock lock(mutex_);
    if (label == comes_) {
      came_ = true;
      changed_.notify_all();
    } else if (label == waits_) {
      met = changed_.wait_for(lock, std::chrono::seconds(5), [&] { return came_; });
    }
  }
  void end(const Program&, int) override {}
  bool met = false;

 private:
  std::string waits_, comes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool came_ = false;
};

/// True if instruction `second` begins in a run while the run before it is still in `first`, on a
/// queue that `second` does not wait for.
bool overtakes(const std::string& first, const std::string& second) {
  Meeting meeting(first, second);
  const auto errors = run_ranks(1, [&](comm::Communicator& communicator) {
    RelayRank rank(communicator, &meeting);
    const auto load = [&](const std::string& label) {
      Program program = rank.executor().program(0);
      std::erase_if(program.instructions, [&](const Instruction& in) { return in.label != label; });
      Instruction& only = program.instructions.at(0);
      only.waits.clear();
      only.border_waits = 1u << static_cast<int>(Queue::upload);
      return rank.executor().load(std::move(program));
    };
    const int held = load(first), free = load(second);
    rank.executor().start(held, 0);
    rank.executor().start(free, 0);
    rank.executor().wait_all();
  });
  EXPECT_EQ(errors, std::vector<std::string>{""});
  return meeting.met;
}

TEST(CpuExecutor, WaitsOnlyForThoseQueuesOfTheRunBeforeThatAnInstructionNames) {
  EXPECT_TRUE(overtakes("copy start", "gather 0"));
  EXPECT_TRUE(overtakes("gather 0", "copy start"));
}

/// Returns the errors of all ranks if `label` fails on rank `failing` of `world`.
std::vector<std::string> errors_with_fault(int world, int failing, const std::string& label) {
  std::barrier meet(world);
  return run_ranks(world, [&](comm::Communicator& communicator) {
    Fault fault(communicator.rank() == failing ? label : "");
    RelayRank rank(communicator, &fault, &meet);
    rank.start();
    rank.start();  // a rank that got through the first run misses the failed peer in the second
    rank.executor().wait_all();
  });
}

TEST(CpuExecutor, AnErrorAnywhereEndsEveryRankAndNamesTheInstruction) {
  for (const std::string label :
       {"copy start", "gather 0", "gather 3", "add 1", "add 3", "reduce", "keep sum"})
    for (int failing : {0, 1, 2}) {
      const auto errors = errors_with_fault(3, failing, label);
      for (int rank = 0; rank < 3; ++rank) {
        const std::string& error = errors[static_cast<std::size_t>(rank)];
        EXPECT_NE(error.find("instruction '" + label + "' failed: boom"), std::string::npos)
            << "rank " << rank << ", failing " << failing << ": " << error;
        if (rank != failing) {
          EXPECT_NE(error.find("rank " + std::to_string(failing)), std::string::npos) << error;
        }
      }
    }
}

TEST(CpuExecutor, NothingRunsOnWhatAFailedInstructionDidNotMake) {
  class Recorder final : public Observer {
   public:
    void begin(const Program& program, int instruction) override {
      const std::string& label = program.instructions[static_cast<std::size_t>(instruction)].label;
      if (label == "gather 1") throw std::runtime_error("boom");
      if (label == "add 1" || label == "reduce" || label == "keep sum") ++late;
    }
    void end(const Program&, int) override {}
    std::atomic<int> late{0};
  };
  run_ranks(1, [](comm::Communicator& communicator) {
    Recorder recorder;
    RelayRank rank(communicator, &recorder);
    EXPECT_ANY_THROW({
      rank.start();
      rank.start();
      rank.executor().wait_all();
    });
    EXPECT_ANY_THROW(rank.executor().wait_all());
    EXPECT_EQ(recorder.late, 0);
  });
}

TEST(CpuExecutor, RefusesToGoOnAfterAnError) {
  std::barrier meet(2);
  run_ranks(2, [&](comm::Communicator& communicator) {
    Fault fault(communicator.rank() == 0 ? "add 1" : "");
    RelayRank rank(communicator, &fault, &meet);
    rank.start();
    EXPECT_ANY_THROW({
      rank.start();
      rank.executor().wait_all();
    });
    const int begun = fault.begun;
    for (int i = 0; i < 3; ++i) {
      EXPECT_THROW(rank.start(), Error);
      EXPECT_THROW(rank.executor().wait_all(), Error);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(fault.begun, begun);  // nothing new began
  });
}

TEST(CpuExecutor, KeepsTheFirstErrorAndItsExitCode) {
  class Refusal final : public Observer {
   public:
    void begin(const Program&, int) override { throw DataError("token 7 is out of range"); }
    void end(const Program&, int) override {}
  };
  run_ranks(1, [](comm::Communicator& communicator) {
    Refusal refusal;
    RelayRank rank(communicator, &refusal);
    try {
      rank.start();
      rank.executor().wait_all();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), ExitCode::data);
      EXPECT_NE(std::string(error.what()).find("token 7 is out of range"), std::string::npos);
    }
  });
}

TEST(CpuExecutor, RefusesAProgramWithoutAKernel) {
  run_ranks(1, [](comm::Communicator& communicator) {
    RelayRank rank(communicator, nullptr);
    Program program = rank.executor().program(0);
    for (Instruction& in : program.instructions)
      if (in.label == "gather 0") in.collective.reset();
    try {
      rank.executor().load(program);
      ADD_FAILURE() << "loaded";
    } catch (const InternalError& error) {
      EXPECT_NE(std::string(error.what()).find("gather 0"), std::string::npos) << error.what();
    }
  });
}

TEST(CpuExecutor, AFalsePredicateCompletesWithoutEffect) {
  run_ranks(1, [](comm::Communicator& communicator) {
    RelayRank rank(communicator, nullptr);
    Program program = rank.executor().program(0);
    Operand flag;
    for (Instruction& in : program.instructions)
      if (in.label == "copy start") flag = in.inputs[0];
    for (Instruction& in : program.instructions)
      if (in.label == "keep sum") in.predicate = flag;  // its first four bytes
    const int handle = rank.executor().load(program);
    for (std::uint32_t apply : {0u, 1u}) {
      const auto start = rank.values("start");
      std::memcpy(start.data(), &apply, sizeof apply);
      const std::vector<float> before(start.begin(), start.end());
      rank.executor().start(handle, 0);
      rank.executor().wait_all();
      EXPECT_EQ(std::vector<float>(start.begin(), start.end()) == before, apply == 0);
    }
  });
}

}  // namespace
}  // namespace strata::runtime
