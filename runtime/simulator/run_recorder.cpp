#include "runtime/simulator/run_recorder.h"

#include "core/check.h"
#include "core/clock.h"
#include "runtime/graph/transfer_node.h"

namespace strata::runtime {
namespace {

const Instruction& instruction_at(const Program& program, int instruction) {
  return program.instructions[static_cast<std::size_t>(instruction)];
}

}  // namespace

RunRecorder::RunRecorder(std::size_t most_runs, std::size_t most_instructions) {
  starts_.reserve(most_runs);
  for (auto& times : times_) times.reserve(most_instructions);
}

void RunRecorder::starting(const Program& program, std::int64_t step) {
  starts_.push_back({&program, step, monotonic_ns()});
}

void RunRecorder::begin(const Program& program, int instruction) {
  begun_ns_[static_cast<std::size_t>(instruction_at(program, instruction).queue)] = monotonic_ns();
}

/// Transfers of a disk overlap within their queue: they are told when they end.
void RunRecorder::end(const Program& program, int instruction) {
  const Instruction& in = instruction_at(program, instruction);
  const auto queue = static_cast<std::size_t>(in.queue);
  if (!is_disk_transfer(*in.operation)) times_[queue].push_back({begun_ns_[queue], monotonic_ns()});
}

void RunRecorder::executed(const Program& program, int instruction, std::int64_t begin_ns,
                           std::int64_t end_ns) {
  const Instruction& in = instruction_at(program, instruction);
  if (is_disk_transfer(*in.operation))
    times_[static_cast<std::size_t>(in.queue)].push_back({begin_ns, end_ns});
}

std::vector<RecordedRun> RunRecorder::runs() const {
  std::array<std::size_t, kQueues> next{};
  std::vector<RecordedRun> runs;
  for (const Start& start : starts_) {
    RecordedRun& run = runs.emplace_back();
    run = {start.program, start.step, start.ns, {}, {}};
    for (const Instruction& in : start.program->instructions) {
      const auto queue = static_cast<std::size_t>(in.queue);
      STRATA_CHECK(next[queue] < times_[queue].size(), in.label, "has not run yet");
      const Times& times = times_[queue][next[queue]++];
      run.begin_ns.push_back(times.begin_ns);
      run.end_ns.push_back(times.end_ns);
    }
  }
  return runs;
}

}  // namespace strata::runtime
