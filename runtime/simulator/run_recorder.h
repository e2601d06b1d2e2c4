// A record of one rank's runs: when each instruction of each run began and ended.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/execute/observer.h"

namespace strata::runtime {

/// Times by std::chrono::steady_clock, and instructions by their place in the Program.
struct RecordedRun {
  const Program* program = nullptr;
  std::int64_t step = 0;
  std::int64_t started_ns = 0;  ///< Executor::start was called
  std::vector<std::int64_t> begin_ns, end_ns;
};

/// Records all that an executor runs whose queues are threads. Allocates nothing while it runs but
/// for runs beyond `most_runs` and instructions beyond `most_instructions` per queue.
class RunRecorder final : public Observer {
 public:
  RunRecorder(std::size_t most_runs, std::size_t most_instructions);
  void starting(const Program& program, std::int64_t step) override;
  void begin(const Program& program, int instruction) override;
  void end(const Program& program, int instruction) override;
  void executed(const Program& program, int instruction, std::int64_t begin_ns,
                std::int64_t end_ns) override;

  /// All runs in their order, once the executor is idle and while its Programs live.
  [[nodiscard]] std::vector<RecordedRun> runs() const;

 private:
  struct Start {
    const Program* program;
    std::int64_t step, ns;
  };
  struct Times {
    std::int64_t begin_ns, end_ns;
  };
  std::vector<Start> starts_;
  std::array<std::vector<Times>, kQueues> times_;  ///< of a queue, in the order of its instructions
  std::array<std::int64_t, kQueues> begun_ns_{};
};

}  // namespace strata::runtime
