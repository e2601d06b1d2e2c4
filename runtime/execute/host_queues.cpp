#include "runtime/execute/host_queues.h"

#include <algorithm>
#include <chrono>

#include "runtime/execute/program_transfers.h"

namespace strata::runtime {
namespace {

constexpr std::array kHostQueues{Queue::disk_read, Queue::disk_write, Queue::host};

std::int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

}  // namespace

bool HostProgram::empty() const {
  return std::ranges::all_of(queues, [](const auto& queue) { return queue.empty(); });
}

HostProgram host_program(const Program& program, const std::vector<BoundInstruction>& bound) {
  HostProgram host{&program, &bound, {}};
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    if (const Queue queue = program.instructions[i].queue; is_host_queue(queue))
      host.queues[static_cast<std::size_t>(queue)].push_back(static_cast<std::int32_t>(i));
  return host;
}

HostQueues::HostQueues(const ExecutorParts& parts, DeviceSide& device)
    : parts_(parts), device_(device) {}

void HostQueues::stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_)
    if (thread.joinable()) thread.join();
}

void HostQueues::start_threads() {
  if (!threads_.empty()) return;
  // Programs may be loaded after others have run. Read here, since a thread may start late.
  RunNumber first = 0;
  {
    std::lock_guard lock(mutex_);
    first = begun_;
  }
  for (const Queue queue : kHostQueues)
    threads_.emplace_back([this, queue, first] { serve(queue, first); });
}

void HostQueues::begin(RunNumber run, const HostProgram& program) {
  Run& slot = runs_[run % kSlots];
  slot.number = run;
  slot.program = &program;
  for (QueueProgress& progress : slot.progress) progress.reset();
  if (threads_.empty())
    for (const Queue queue : kHostQueues)
      slot.progress[static_cast<std::size_t>(queue)].advance(kFinished);
  {
    std::lock_guard lock(mutex_);
    begun_ = run + 1;
  }
  wake_.notify_all();
}

void HostQueues::wait(RunNumber run, Queue queue, std::int32_t instruction) const {
  run_of(run).progress[static_cast<std::size_t>(queue)].wait_for(instruction);
}

bool HostQueues::has_reached(RunNumber run, Queue queue, std::int32_t instruction) const {
  return run_of(run).progress[static_cast<std::size_t>(queue)].has_reached(instruction);
}

void HostQueues::serve(Queue queue, RunNumber first) {
  device_.bind_thread();
  RunNumber next = first;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return stopping_ || next < begun_; });
      if (next >= begun_) return;
    }
    Run& run = runs_[next % kSlots];
    execute(run, queue);
    run.progress[static_cast<std::size_t>(queue)].advance(kFinished);
    ++next;
  }
}

/// Serves one disk queue in one run.
class HostQueues::DiskQueue final : public ProgramTransfers {
 public:
  DiskQueue(HostQueues& queues, Run& run, Queue queue)
      : ProgramTransfers(*run.program->program, *run.program->bound, queues.parts_.observers,
                         run.progress[static_cast<std::size_t>(queue)]),
        queues_(queues),
        run_(run) {}
  [[nodiscard]] bool is_met(std::int32_t i) override {
    return queues_.is_met(run_, instruction(i));
  }
  void wait_until_met(std::int32_t i) override { queues_.wait_until_met(run_, instruction(i)); }
  [[nodiscard]] bool is_stopped() const override { return queues_.device_.is_poisoned(); }
  void failed(std::int32_t i, const std::exception& error) override {
    queues_.device_.poison(instruction(i), error);
  }

 private:
  HostQueues& queues_;
  Run& run_;
};

void HostQueues::execute(Run& run, Queue queue) {
  const std::vector<std::int32_t>& list = run.program->queues[static_cast<std::size_t>(queue)];
  if (list.empty()) return;
  if (queue != Queue::host) {
    DiskQueue transfers(*this, run, queue);
    return run_transfers(*parts_.disk, list, transfers);
  }
  for (const std::int32_t index : list) {
    const Instruction& in = run.program->program->instructions[static_cast<std::size_t>(index)];
    try {
      wait_until_met(run, in);
      if (device_.is_poisoned()) return;
      run_operation(run, index);
    } catch (const std::exception& error) {
      device_.poison(in, error);
      return;
    }
    run.progress[static_cast<std::size_t>(queue)].advance(index);
  }
}

void HostQueues::run_operation(Run& run, std::int32_t index) {
  const Program& program = *run.program->program;
  const Instruction& in = program.instructions[static_cast<std::size_t>(index)];
  const BoundInstruction& bound = (*run.program->bound)[static_cast<std::size_t>(index)];
  const auto begin = std::chrono::steady_clock::now();
  for (Observer* observer : parts_.observers) observer->begin(program, index);
  if (bound.is_wanted())
    bound.kernel(*parts_.host_stream,
                 {bound.inputs, bound.outputs, bound.workspace, in.attributes});
  else
    for (Observer* observer : parts_.observers) observer->skipped(program, index);
  const auto end = std::chrono::steady_clock::now();
  for (Observer* observer : parts_.observers) {
    observer->end(program, index);
    if (observer->wants_device_times())
      observer->executed(program, index, nanoseconds(begin), nanoseconds(end));
  }
}

bool HostQueues::is_met(Run& run, const Instruction& in) {
  for (const std::int32_t other : in.waits) {
    const Queue queue = run.program->program->instructions[static_cast<std::size_t>(other)].queue;
    if (is_host_queue(queue) ? !run.progress[static_cast<std::size_t>(queue)].has_reached(other)
                             : !device_.has_completed(run.number, other))
      return false;
  }
  // Only the first instruction of a queue waits at the border, and then nothing is under way.
  return in.border_waits == 0;
}

void HostQueues::wait_until_met(Run& run, const Instruction& in) {
  for (const std::int32_t other : in.waits) {
    const Queue queue = run.program->program->instructions[static_cast<std::size_t>(other)].queue;
    if (is_host_queue(queue))
      run.progress[static_cast<std::size_t>(queue)].wait_for(other);
    else
      device_.wait_completed(run.number, other);
  }
  if (in.border_waits == 0 || run.number == 0) return;
  for (const Queue queue : kAllQueues) {
    if ((in.border_waits >> static_cast<int>(queue) & 1u) == 0) continue;
    if (is_host_queue(queue))
      wait(run.number - 1, queue, kFinished);
    else
      device_.wait_ended(run.number - 1, queue);
  }
}

}  // namespace strata::runtime
