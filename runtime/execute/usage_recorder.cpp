#include "runtime/execute/usage_recorder.h"

#include "core/clock.h"
#include "runtime/execute/transfer_tally.h"
#include "runtime/graph/transfer_node.h"

namespace strata::runtime {
void add(Usage& sum, const Usage& more) {
  for (std::size_t q = 0; q < sum.size(); ++q) {
    sum[q].busy_seconds += more[q].busy_seconds;
    sum[q].waited_seconds += more[q].waited_seconds;
    sum[q].bytes += more[q].bytes;
  }
}

void UsageRecorder::begin_program(const Program& program, std::int64_t step) {
  StepBytes& of_step = bytes_[static_cast<std::size_t>(step) % bytes_.size()];
  for (const Instruction& in : program.instructions)
    if (const std::int64_t bytes =
            in.queue == Queue::communication ? in.demand.moved_bytes : bytes_between_tiers(in);
        bytes > 0)
      of_step[static_cast<std::size_t>(in.queue)].fetch_add(bytes, std::memory_order_relaxed);
}

bool UsageRecorder::is_told(const Instruction& in) const {
  return of_ == TraceOf::device || is_disk_transfer(*in.operation);
}

void UsageRecorder::begin(const Program& program, int instruction) {
  const Instruction& in = program.instructions[static_cast<std::size_t>(instruction)];
  begun_ns_[static_cast<std::size_t>(in.queue)] = monotonic_ns();
}

void UsageRecorder::end(const Program& program, int instruction) {
  const Instruction& in = program.instructions[static_cast<std::size_t>(instruction)];
  if (is_told(in)) return;
  const auto q = static_cast<std::size_t>(in.queue);
  counters_[q].busy_ns.fetch_add(monotonic_ns() - begun_ns_[q], std::memory_order_relaxed);
}

void UsageRecorder::executed(const Program& program, int instruction, std::int64_t begin_ns,
                             std::int64_t end_ns) {
  const Instruction& in = program.instructions[static_cast<std::size_t>(instruction)];
  if (is_told(in))
    counters_[static_cast<std::size_t>(in.queue)].busy_ns.fetch_add(end_ns - begin_ns,
                                                                    std::memory_order_relaxed);
}

void UsageRecorder::waited(const Program&, int, Queue on, std::int64_t ns) {
  counters_[static_cast<std::size_t>(on)].waited_ns.fetch_add(ns, std::memory_order_relaxed);
}

Usage UsageRecorder::take(std::int64_t step) {
  StepBytes& of_step = bytes_[static_cast<std::size_t>(step) % bytes_.size()];
  Usage usage;
  for (std::size_t q = 0; q < usage.size(); ++q) {
    usage[q].busy_seconds = static_cast<double>(counters_[q].busy_ns.exchange(0)) * 1e-9;
    usage[q].waited_seconds = static_cast<double>(counters_[q].waited_ns.exchange(0)) * 1e-9;
    usage[q].bytes = of_step[q].exchange(0);
  }
  return usage;
}

}  // namespace strata::runtime
