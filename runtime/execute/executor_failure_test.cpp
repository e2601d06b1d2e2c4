// Checks what an executor does if an instruction fails, or if it is destroyed while a Program runs.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "comm/host_stream.h"
#include "core/error.h"
#include "runtime/execute/executor.h"

namespace strata::runtime {
namespace {

/// A communicator whose peer never comes: collectives wait until somebody aborts.
class SilentCommunicator final : public comm::Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 2; }
  [[nodiscard]] std::string_view backend() const override { return "silent"; }
  void register_arena(const comm::ArenaRegion&) override {}
  void unregister_arena(const std::byte*) override {}
  [[nodiscard]] comm::Exchange exchange() const override { return comm::Exchange::none; }
  void execute(kernels::Stream&, const comm::Collective&, const std::byte*, std::byte*,
               std::span<std::byte>) override {
    std::unique_lock lock(mutex_);
    running_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return reason_.has_value(); });
    throw PeerError(*reason_);
  }
  void abort(const std::string& reason, ExitCode code) noexcept override {
    const std::lock_guard lock(mutex_);
    if (!reason_) {
      reason_ = reason;
      code_ = code;
    }
    changed_.notify_all();
  }
  void close() override {}

  void wait_until_running() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return running_; });
  }
  [[nodiscard]] std::string reason() {
    const std::lock_guard lock(mutex_);
    return reason_.value_or("");
  }
  [[nodiscard]] ExitCode code() {
    const std::lock_guard lock(mutex_);
    return code_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false;
  std::optional<std::string> reason_;
  ExitCode code_ = ExitCode::done;
};

void fail_kernel(kernels::Stream&, const kernels::KernelCall&) {
  throw DataError("token 7 is too large");
}

class Kernels final : public kernels::KernelTable {
 public:
  [[nodiscard]] kernels::Kernel find(std::string_view name) const override {
    if (name != "fail") return nullptr;
    return passes ? [](kernels::Stream&, const kernels::KernelCall&) {} : fail_kernel;
  }
  bool passes = false;  ///< true: the kernel of "fail" succeeds
};

const kernels::Operation kFail{.name = "fail", .infer = nullptr, .cost = nullptr};
const kernels::Operation kBarrier{.name = "barrier", .infer = nullptr, .cost = nullptr};

Instruction instruction(const kernels::Operation& operation, Queue queue, const char* label) {
  Instruction in;
  in.operation = &operation;
  in.queue = queue;
  in.label = label;
  if (queue == Queue::communication) {
    in.collective.emplace();
    in.inputs.resize(1);
    in.outputs.resize(1);
  }
  return in;
}

/// The step of the last Program that the compute queue began, as the status page shows it.
class ShownStep final : public Observer {
 public:
  void begin_program(const Program&, std::int64_t step) override { shown = step; }
  void begin(const Program&, int) override {}
  void end(const Program&, int) override {}
  std::atomic<std::int64_t> shown{-1};
};

class ExecutorFailure : public testing::Test {
 protected:
  std::unique_ptr<Executor> make() {
    ExecutorParts parts;
    parts.arenas[static_cast<int>(Tier::device)] = &arena_;
    parts.communicators.add(comm::MeshAxis::data, communicator_);
    parts.observers.push_back(&shown_step_);
    return make_cpu_executor(std::move(parts), kernels_, streams_[0], streams_[1]);
  }
  static Program program(std::vector<Instruction> instructions) {
    Program program;
    program.name = "test";
    program.blocks = {"block"};
    program.instructions = std::move(instructions);
    return program;
  }
  Arena arena_{"device", 64, ArenaKind::private_memory};
  SilentCommunicator communicator_;
  ShownStep shown_step_;
  Kernels kernels_;
  std::array<comm::HostStream, 2> streams_;
};

TEST_F(ExecutorFailure, WakesTheOtherQueueAndNamesTheInstruction) {
  auto executor = make();
  std::vector<Instruction> list{instruction(kBarrier, Queue::communication, "meet"),
                                instruction(kFail, Queue::compute, "embed")};
  list.push_back(instruction(kBarrier, Queue::communication, "meet again"));
  list.back().waits = {1};
  executor->start(executor->load(program(std::move(list))), 0);
  try {
    executor->wait_all();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "instruction 'embed' failed: token 7 is too large");
    EXPECT_EQ(error.exit_code(), ExitCode::data);
  }
  EXPECT_THROW(executor->start(0, 0), Error);
}

// Abort ends the job under MPI: the launcher must hear whose fault it was, not "try again".
TEST_F(ExecutorFailure, AbortsPeersWithItsOwnMessageAndExitCode) {
  auto executor = make();
  executor->start(executor->load(program({instruction(kFail, Queue::compute, "embed")})), 0);
  EXPECT_THROW(executor->wait_all(), Error);
  EXPECT_EQ(communicator_.code(), ExitCode::data);
  EXPECT_NE(communicator_.reason().find("'embed'"), std::string::npos) << communicator_.reason();
}

// A survivor's status page is read after the failure, and must show the step of the failure.
TEST_F(ExecutorFailure, TheStepAfterAFailureIsNotTakenUp) {
  auto executor = make();
  std::vector<Instruction> list{instruction(kBarrier, Queue::communication, "meet"),
                                instruction(kFail, Queue::compute, "never")};
  list.back().waits = {0};
  const int handle = executor->load(program(std::move(list)));
  executor->start(handle, 4);
  executor->start(handle, 5);
  communicator_.wait_until_running();
  while (shown_step_.shown < 4) std::this_thread::yield();
  communicator_.abort("rank 1 was killed", ExitCode::try_again);
  EXPECT_THROW(executor->wait_all(), Error);
  EXPECT_EQ(shown_step_.shown, 4);
}

// The compute queue is done with its step while a collective of that step waits for a peer.
TEST_F(ExecutorFailure, AStepIsTakenUpAfterWhatItWaitsForInTheOneBefore) {
  kernels_.passes = true;
  auto executor = make();
  std::vector<Instruction> list{instruction(kFail, Queue::compute, "embed"),
                                instruction(kBarrier, Queue::communication, "meet")};
  list.front().border_waits = 1u << static_cast<int>(Queue::communication);
  list.back().waits = {0};
  const int handle = executor->load(program(std::move(list)));
  executor->start(handle, 4);
  executor->start(handle, 5);
  communicator_.wait_until_running();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(shown_step_.shown, 4);
  communicator_.abort("rank 1 was killed", ExitCode::try_again);
  EXPECT_THROW(executor->wait_all(), Error);
  EXPECT_EQ(shown_step_.shown, 4);
}

TEST_F(ExecutorFailure, DestructionEndsARunningProgram) {
  auto executor = make();
  executor->start(executor->load(program({instruction(kBarrier, Queue::communication, "meet")})),
                  0);
  communicator_.wait_until_running();
  executor.reset();
  EXPECT_NE(communicator_.reason(), "");
}

}  // namespace
}  // namespace strata::runtime
