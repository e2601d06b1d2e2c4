// The executor whose queues are threads of the CPU that plays the device.
#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "runtime/execute/bound_instruction.h"
#include "runtime/execute/dead_ranges.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/program_transfers.h"
#include "runtime/execute/queue_progress.h"
#include "runtime/execute/run_failure.h"

namespace strata::runtime {
namespace {

/// Holds one list index per queue.
using VectorClock = std::array<std::int32_t, kQueues>;
VectorClock no_instruction() {
  VectorClock clock;
  clock.fill(-1);
  return clock;
}

struct Loaded {
  Program program;
  std::vector<BoundInstruction> bound;
  std::array<std::vector<std::int32_t>, kQueues> queues;  ///< list indices, by queue
  std::unique_ptr<DeadRanges> dead;
  VectorClock inputs_read =
      no_instruction();  ///< the last instruction per queue that reads a staged input
};

/// One execution of a loaded Program. At most kInFlight run at a time; one more slot keeps the
/// progress of the run before them readable, since a run waits for the one before.
struct Run {
  const Loaded* loaded = nullptr;
  std::int64_t step = 0;
  std::array<QueueProgress, kQueues> progress;
  Run* previous = nullptr;
};

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(ExecutorParts parts, const kernels::KernelTable& kernels, kernels::Stream& compute,
              kernels::Stream& communication)
      : parts_(std::move(parts)), kernels_(kernels) {
    streams_[static_cast<int>(Queue::compute)] = &compute;
    streams_[static_cast<int>(Queue::communication)] = &communication;
    for (int q = 0; q < kQueues; ++q) threads_[q] = std::thread([this, q] { serve(q); });
  }

  /// Poisons instead of waiting for a Program under way, whose peers may never come.
  ~CpuExecutor() override {
    bool running = false;
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      running = finished() < started_;
    }
    if (running) {
      failure_.poison();
      parts_.communicators.abort("the executor went while a Program ran", ExitCode::internal);
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  CpuExecutor(const CpuExecutor&) = delete;
  CpuExecutor& operator=(const CpuExecutor&) = delete;

  int load(Program program) override {
    auto loaded = std::make_unique<Loaded>();
    loaded->program = std::move(program);
    const Program& p = loaded->program;
    for (std::size_t i = 0; i < p.instructions.size(); ++i) {
      loaded->bound.push_back(bind_instruction(p, p.instructions[i], parts_, kernels_, "cpu"));
      const int queue = static_cast<int>(p.instructions[i].queue);
      loaded->queues[queue].push_back(static_cast<std::int32_t>(i));
      if (reads_staged_input(p, p.instructions[i]))
        loaded->inputs_read[queue] = static_cast<std::int32_t>(i);
    }
    loaded->dead = std::make_unique<DeadRanges>(p, parts_);
    loaded_.push_back(std::move(loaded));
    return static_cast<int>(loaded_.size()) - 1;
  }

  [[nodiscard]] const Program& program(int handle) const override {
    return loaded_[static_cast<std::size_t>(handle)]->program;
  }

  RunNumber start(int handle, std::int64_t step) override {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return started_ - finished() < kInFlight; });
    failure_.rethrow();
    Run& run = runs_[started_ % kRuns];
    for (Observer* observer : parts_.observers)
      observer->starting(loaded_[static_cast<std::size_t>(handle)]->program, step);
    run.loaded = loaded_[static_cast<std::size_t>(handle)].get();
    run.step = step;
    for (QueueProgress& progress : run.progress) progress.reset();
    run.previous = started_ == 0 ? nullptr : &runs_[(started_ - 1) % kRuns];
    const RunNumber number = started_++;
    lock.unlock();
    wake_.notify_all();
    return number;
  }

  void wait_inputs_read(RunNumber number) override {
    std::unique_lock lock(mutex_);
    STRATA_CHECK(number < started_, number, started_);
    if (finished() <= number) {
      // This thread alone reuses the slot, so it stays readable without the lock.
      const Run& run = runs_[number % kRuns];
      lock.unlock();
      for (int q = 0; q < kQueues; ++q) run.progress[q].wait_for(run.loaded->inputs_read[q]);
      lock.lock();
    }
    failure_.rethrow();
  }

  void wait(RunNumber number) override {
    std::unique_lock lock(mutex_);
    STRATA_CHECK(number < started_, number, started_);
    done_.wait(lock, [&] { return finished() > number; });
    failure_.rethrow();
  }

  void wait_all() override {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return finished() == started_; });
    failure_.rethrow();
  }

 private:
  static constexpr std::int64_t kInFlight = 2;
  static constexpr std::int64_t kRuns = kInFlight + 1;

  [[nodiscard]] std::int64_t finished() const {
    std::int64_t least = queue_runs_[0];
    for (std::int64_t runs : queue_runs_) least = std::min(least, runs);
    return least;
  }

  /// The body of one queue's thread: executes runs in the order in which they were started.
  void serve(int queue) {
    std::int64_t next = 0;
    while (true) {
      Run* run = nullptr;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return stopping_ || next < started_; });
        if (next >= started_) return;
        run = &runs_[next % kRuns];
      }
      execute(*run, queue);
      run->progress[queue].advance(kFinished);
      ++next;
      {
        std::lock_guard lock(mutex_);
        queue_runs_[queue] = next;
      }
      done_.notify_all();
    }
  }

  void execute(Run& run, int queue) {
    const Loaded& loaded = *run.loaded;
    if (queue == static_cast<int>(Queue::compute)) {
      if (!loaded.queues[queue].empty()) wait_at_border(run, loaded.queues[queue].front());
      // The status page keeps showing the step in which a failure found this rank.
      if (failure_.is_poisoned()) return;
      for (Observer* observer : parts_.observers) observer->begin_program(loaded.program, run.step);
    }
    if (is_disk_queue(queue)) {
      if (loaded.queues[queue].empty()) return;
      DiskQueue transfers(*this, run, queue);
      return run_transfers(*parts_.disk, loaded.queues[queue], transfers);
    }
    for (std::int32_t index : loaded.queues[queue]) {
      const Instruction& in = loaded.program.instructions[index];
      if (queue == static_cast<int>(Queue::compute))
        wait_observed(run, index);
      else
        wait_until_met(run, in);
      if (failure_.is_poisoned()) return;
      try {
        run_instruction(loaded, index, streams_[queue]);
      } catch (const std::exception& error) {
        poison(in, error);
        return;
      }
      run.progress[queue].advance(index);
    }
  }

  static bool is_disk_queue(int queue) {
    return queue == static_cast<int>(Queue::disk_read) ||
           queue == static_cast<int>(Queue::disk_write);
  }

  /// Calls each(progress, place) for all that `in` waits for, until one returns false.
  template <typename Each>
  static bool for_each_wait(Run& run, const Instruction& in, const Each& each) {
    for (std::int32_t other : in.waits) {
      const auto queue = run.loaded->program.instructions[static_cast<std::size_t>(other)].queue;
      if (!each(run.progress[static_cast<std::size_t>(queue)], other)) return false;
    }
    if (in.border_waits != 0 && run.previous != nullptr)
      for (int q = 0; q < kQueues; ++q)
        if ((in.border_waits >> q & 1u) != 0 && !each(run.previous->progress[q], kFinished))
          return false;
    return true;
  }

  static void wait_until_met(Run& run, const Instruction& in) {
    for_each_wait(run, in, [](const QueueProgress& progress, std::int32_t place) {
      progress.wait_for(place);
      return true;
    });
  }

  /// Waits until queue `on` has reached `place`, and tells observers how long the computation stood
  /// still for it before instruction `index` of `p`.
  void stand_still(const Program& p, std::int32_t index, const QueueProgress& progress,
                   std::int32_t place, Queue on) {
    if (progress.has_reached(place)) return;
    const auto begin = std::chrono::steady_clock::now();
    progress.wait_for(place);
    const std::int64_t ns =
        std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    for (Observer* observer : parts_.observers) observer->waited(p, index, on, ns);
  }

  /// Waits for what an instruction of the compute queue needs of the run before.
  void wait_at_border(Run& run, std::int32_t index) {
    const Program& p = run.loaded->program;
    const Instruction& in = p.instructions[static_cast<std::size_t>(index)];
    if (in.border_waits == 0 || run.previous == nullptr) return;
    for (const Queue on : kAllQueues)
      if ((in.border_waits >> static_cast<int>(on) & 1u) != 0)
        stand_still(p, index, run.previous->progress[static_cast<std::size_t>(on)], kFinished, on);
  }

  void wait_observed(Run& run, std::int32_t index) {
    const Program& p = run.loaded->program;
    for (std::int32_t other : p.instructions[static_cast<std::size_t>(index)].waits) {
      const Queue on = p.instructions[static_cast<std::size_t>(other)].queue;
      stand_still(p, index, run.progress[static_cast<std::size_t>(on)], other, on);
    }
    wait_at_border(run, index);
  }

  static bool is_met(Run& run, const Instruction& in) {
    return for_each_wait(run, in, [](const QueueProgress& progress, std::int32_t place) {
      return progress.has_reached(place);
    });
  }

  /// Serves one disk queue in one run.
  class DiskQueue final : public ProgramTransfers {
   public:
    DiskQueue(CpuExecutor& executor, Run& run, int queue)
        : ProgramTransfers(run.loaded->program, run.loaded->bound, executor.parts_.observers,
                           run.progress[queue]),
          executor_(executor),
          run_(run) {}
    [[nodiscard]] bool is_met(std::int32_t i) override {
      return CpuExecutor::is_met(run_, instruction(i));
    }
    void wait_until_met(std::int32_t i) override {
      CpuExecutor::wait_until_met(run_, instruction(i));
    }
    [[nodiscard]] bool is_stopped() const override { return executor_.failure_.is_poisoned(); }
    void started(std::int32_t i) override {
      run_.loaded->dead->begin(i);
      ProgramTransfers::started(i);
    }
    void finished(std::int32_t i, const TransferTimes& times) override {
      run_.loaded->dead->end(i);
      ProgramTransfers::finished(i, times);
    }
    void failed(std::int32_t i, const std::exception& error) override {
      executor_.poison(instruction(i), error);
    }

   private:
    CpuExecutor& executor_;
    Run& run_;
  };

  void run_instruction(const Loaded& loaded, std::int32_t index, kernels::Stream* stream) {
    const Instruction& in = loaded.program.instructions[index];
    const BoundInstruction& bound = loaded.bound[static_cast<std::size_t>(index)];
    loaded.dead->begin(index);
    for (Observer* observer : parts_.observers) observer->begin(loaded.program, index);
    if (bound.is_wanted()) {
      if (in.collective)
        bound.communicator->run(*stream, *in.collective, bound.inputs[0].data,
                                bound.outputs[0].data, bound.workspace);
      else if (in.queue == Queue::upload || in.queue == Queue::download)
        copy(loaded, index);
      else
        bound.kernel(*stream, {bound.inputs, bound.outputs, bound.workspace, in.attributes});
    } else {
      for (Observer* observer : parts_.observers) observer->skipped(loaded.program, index);
    }
    for (Observer* observer : parts_.observers) observer->end(loaded.program, index);
    loaded.dead->end(index);
  }

  void copy(const Loaded& loaded, std::int32_t index) {
    const BoundInstruction& bound = loaded.bound[static_cast<std::size_t>(index)];
    std::memcpy(bound.outputs[0].data, bound.inputs[0].data,
                static_cast<std::size_t>(loaded.program.instructions[index].outputs[0].bytes));
    for (Observer* observer : parts_.observers) observer->copied(loaded.program, index);
  }

  /// The other queues notice the poison when they wake.
  void poison(const Instruction& in, const std::exception& error) {
    failure_.tell("instruction '" + in.label + "'", error);
  }

  ExecutorParts parts_;
  const kernels::KernelTable& kernels_;
  std::array<kernels::Stream*, kQueues> streams_{};  // null if the executor moves the bytes itself
  std::vector<std::unique_ptr<Loaded>> loaded_;
  std::array<Run, kRuns> runs_;
  std::array<std::thread, kQueues> threads_;
  std::array<std::int64_t, kQueues> queue_runs_{};  // runs that each queue has ended, under mutex_
  std::int64_t started_ = 0;
  bool stopping_ = false;
  RunFailure failure_{parts_.communicators};
  std::mutex mutex_;
  std::condition_variable wake_;  // signals a started run, or the stop
  std::condition_variable done_;  // signals that a queue ended a run
};

}  // namespace

std::unique_ptr<Executor> make_cpu_executor(ExecutorParts parts,
                                            const kernels::KernelTable& kernels,
                                            kernels::Stream& compute_stream,
                                            kernels::Stream& communication_stream) {
  return std::make_unique<CpuExecutor>(std::move(parts), kernels, compute_stream,
                                       communication_stream);
}

}  // namespace strata::runtime
