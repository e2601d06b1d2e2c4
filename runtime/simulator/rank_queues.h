// The queues of one simulated rank: what they have done, what they do, what the next instruction
// of each waits for. The rules are those of the executors (cpu_executor.cpp); time passes
// elsewhere.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/execute/executor.h"
#include "runtime/execute/queue_progress.h"
#include "runtime/simulator/instruction_work.h"

namespace strata::runtime {

/// A loaded Program with its costs.
struct SimulatedProgram {
  const Program* program = nullptr;
  std::vector<InstructionWork> work;                      ///< by instruction
  std::array<std::vector<std::int32_t>, kQueues> queues;  ///< list indices per queue
  std::array<std::int32_t, kQueues> inputs_read{};        ///< per queue the last that reads some
};

/// One execution of a Program is a run. Each queue serves all runs in their order.
class RankQueues {
 public:
  static constexpr std::int64_t kInFlight = 2;  ///< runs that may be under way

  std::vector<Observer*> observers;

  /// Less than kInFlight are under way; `program` stays.
  RunNumber start(const SimulatedProgram& program, std::int64_t step);
  [[nodiscard]] std::int64_t started() const { return started_; }
  /// Runs that all queues have done with.
  [[nodiscard]] std::int64_t finished() const;
  [[nodiscard]] bool has_read_inputs(RunNumber run) const;
  /// Returns when a run, which has ended, ended.
  [[nodiscard]] std::int64_t ended_ns(RunNumber run) const {
    return ended_ns_.at(static_cast<std::size_t>(run));
  }

  /// Begins all instructions that can begin, and appends their queues to `begun`.
  void proceed(std::int64_t now_ns, std::vector<Queue>& begun);
  /// The instruction that runs on `queue` ends; proceed() is due.
  void end(Queue queue, std::int64_t now_ns);

  [[nodiscard]] bool is_busy(Queue queue) const { return of(queue).busy; }
  /// The instruction that runs on `queue`.
  [[nodiscard]] const Instruction& running(Queue queue) const;
  [[nodiscard]] const InstructionWork& work(Queue queue) const;
  /// Says for each queue that cannot go on its next instruction, and what that waits for.
  [[nodiscard]] std::vector<std::string> waits() const;

 private:
  struct Run {
    const SimulatedProgram* loaded = nullptr;
    std::int64_t step = 0;
    std::array<std::int32_t, kQueues> done{};  ///< last list index; kFinished: all of them
  };
  /// A thing that an instruction waits for: another one of its run, or (-1) all that a queue has to
  /// do in the run before.
  struct Unmet {
    Queue on;
    std::int32_t instruction;
    bool operator==(const Unmet&) const = default;
  };
  struct OfQueue {
    RunNumber run = 0;         ///< that it serves
    std::size_t position = 0;  ///< in the run's list of the queue
    bool busy = false;
    bool told = false;  ///< of the compute queue: begin_program was called for the run
    std::int64_t begun_ns = 0;
    std::optional<Unmet> stands_for;  ///< of the compute queue
    std::int64_t stood_since_ns = 0;
  };
  /// The runs under way, and one whose ends they may wait for.
  static constexpr std::int64_t kRuns = kInFlight + 1;

  [[nodiscard]] const OfQueue& of(Queue queue) const {
    return queues_[static_cast<std::size_t>(queue)];
  }
  [[nodiscard]] Run& run_of(RunNumber run) { return runs_[static_cast<std::size_t>(run % kRuns)]; }
  [[nodiscard]] const Run& run_of(RunNumber run) const {
    return runs_[static_cast<std::size_t>(run % kRuns)];
  }
  [[nodiscard]] const std::vector<std::int32_t>& list(Queue queue) const {
    return run_of(of(queue).run).loaded->queues[static_cast<std::size_t>(queue)];
  }
  [[nodiscard]] std::int32_t next(Queue queue) const { return list(queue)[of(queue).position]; }
  [[nodiscard]] std::optional<Unmet> first_unmet(Queue queue) const;
  [[nodiscard]] std::optional<Unmet> unmet_of_run(const Run& run, const Instruction& in) const;
  [[nodiscard]] std::optional<Unmet> unmet_at_border(RunNumber run, const Instruction& in) const;
  bool go_on(Queue queue, std::int64_t now_ns, std::vector<Queue>& begun);
  void stand(std::optional<Unmet> unmet, std::int64_t now_ns);
  void finish_run(Queue queue, std::int64_t now_ns);

  std::array<Run, kRuns> runs_{};
  std::array<OfQueue, kQueues> queues_{};
  std::int64_t started_ = 0;
  std::vector<std::int64_t> ended_ns_;
};

}  // namespace strata::runtime
