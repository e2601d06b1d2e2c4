#include "runtime/execute/profile.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/clock.h"
#include "runtime/graph/transfer_node.h"

namespace strata::runtime {
namespace {

const Instruction& at(const Program& program, int instruction) {
  return program.instructions[static_cast<std::size_t>(instruction)];
}

/// True if begin and end measure `in`. Disk transfers, which overlap, are reported at their end.
bool is_measured_here(TraceOf of, const Instruction& in) {
  return of == TraceOf::queues && !is_disk_transfer(*in.operation);
}

}  // namespace

void ProfileRecorder::starting(const Program& program, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  auto found = std::ranges::find_if(
      tables_, [&](const std::unique_ptr<Table>& table) { return table->program == &program; });
  if (found == tables_.end()) {
    tables_.push_back(std::make_unique<Table>());
    found = tables_.end() - 1;
    (*found)->program = &program;
    (*found)->slots.resize(program.instructions.size());
  }
  Table& table = **found;
  ++table.started;
  if (program.name == "evaluate")
    table.first_run = std::numeric_limits<std::int64_t>::max();
  else if (step < first_step_)
    table.first_run = table.started;
  else if (step != std::exchange(last_step_, step))
    ++steps_;
}

ProfileRecorder::Table& ProfileRecorder::table_of(const Program& program, Queue queue) {
  Table*& known = of_queue_[static_cast<std::size_t>(queue)].table;
  if (known != nullptr && known->program == &program) return *known;
  const std::lock_guard lock(mutex_);
  known = std::ranges::find_if(tables_, [&](const std::unique_ptr<Table>& table) {
            return table->program == &program;
          })->get();
  return *known;
}

void ProfileRecorder::begin(const Program& program, int instruction) {
  const Instruction& in = at(program, instruction);
  if (is_measured_here(of_, in))
    of_queue_[static_cast<std::size_t>(in.queue)].begun_ns = monotonic_ns();
}

void ProfileRecorder::end(const Program& program, int instruction) {
  const Instruction& in = at(program, instruction);
  if (!is_measured_here(of_, in)) return;
  const std::int64_t end = monotonic_ns();
  add(program, instruction, of_queue_[static_cast<std::size_t>(in.queue)].begun_ns, end);
}

void ProfileRecorder::executed(const Program& program, int instruction, std::int64_t begin_ns,
                               std::int64_t end_ns) {
  add(program, instruction, begin_ns, end_ns);
}

void ProfileRecorder::waited(const Program& program, int instruction, Queue on, std::int64_t ns) {
  const Table& table = table_of(program, at(program, instruction).queue);
  if (table.slots[static_cast<std::size_t>(instruction)].runs < table.first_run) return;
  of_queue_[static_cast<std::size_t>(on)].waited_ns += ns;
  if (begin_ns_ == 0) begin_ns_ = monotonic_ns() - ns;  // counting begins with this wait
}

void ProfileRecorder::add(const Program& program, int instruction, std::int64_t begin_ns,
                          std::int64_t end_ns) {
  const Queue queue = at(program, instruction).queue;
  Table& table = table_of(program, queue);
  Slot& slot = table.slots[static_cast<std::size_t>(instruction)];
  if (slot.runs++ < table.first_run) return;
  ++slot.counted;
  slot.ns += end_ns - begin_ns;
  if (queue != Queue::compute) return;
  if (begin_ns_ == 0) begin_ns_ = begin_ns;
  end_ns_ = std::max(end_ns_, end_ns);
}

std::int64_t ProfileRecorder::wall_ns() const { return end_ns_ - begin_ns_; }

std::vector<InstructionTime> ProfileRecorder::instructions() const {
  std::vector<InstructionTime> all;
  for (const auto& table : tables_)
    for (std::size_t i = 0; i < table->slots.size(); ++i)
      if (const Slot& slot = table->slots[i]; slot.counted > 0)
        all.push_back({table->program, static_cast<std::int32_t>(i), slot.counted, slot.ns});
  return all;
}

std::array<QueueTime, kQueues> ProfileRecorder::queues() const {
  std::array<QueueTime, kQueues> queues{};
  for (const InstructionTime& time : instructions())
    queues[static_cast<std::size_t>(at(*time.program, time.instruction).queue)].busy_ns += time.ns;
  for (std::size_t q = 0; q < queues.size(); ++q) queues[q].waited_ns = of_queue_[q].waited_ns;
  return queues;
}

}  // namespace strata::runtime
