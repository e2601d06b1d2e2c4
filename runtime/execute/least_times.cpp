#include "runtime/execute/least_times.h"

#include <algorithm>

#include "core/clock.h"
#include "runtime/graph/transfer_node.h"

namespace strata::runtime {
namespace {

const Instruction& at(const Program& program, int instruction) {
  return program.instructions[static_cast<std::size_t>(instruction)];
}

}  // namespace

LeastTimes::Table& LeastTimes::table_of(const Program& program) {
  const auto found = std::ranges::find(tables_, &program, &Table::program);
  if (found != tables_.end()) return *found;
  Table& table = tables_.emplace_back();
  table.program = &program;
  for (const Instruction& in : program.instructions) {
    Kind* fresh = nullptr;  // without a signature an instruction is a kind of its own
    Kind*& kind =
        in.demand.signature == 0 ? fresh : kind_of_[std::pair(in.queue, in.demand.signature)];
    if (kind == nullptr && !is_disk_transfer(*in.operation)) kind = &kinds_.emplace_back();
    table.kinds.push_back(kind);
  }
  return table;
}

const LeastTimes::Table& LeastTimes::table_of(const Program& program, Queue queue) {
  const Table*& known = table_of_queue_[static_cast<std::size_t>(queue)];
  if (known != nullptr && known->program == &program) return *known;
  const std::lock_guard lock(mutex_);
  return *(known = &table_of(program));
}

void LeastTimes::starting(const Program& program, std::int64_t step) {
  const std::lock_guard lock(mutex_);
  ++table_of(program).started[static_cast<std::size_t>(step) % 2];
}

void LeastTimes::begin(const Program& program, int instruction) {
  const auto queue = static_cast<std::size_t>(at(program, instruction).queue);
  is_skipped_[queue] = false;
  begun_ns_[queue] = monotonic_ns();
}

void LeastTimes::skipped(const Program& program, int instruction) {
  is_skipped_[static_cast<std::size_t>(at(program, instruction).queue)] = true;
}

void LeastTimes::end(const Program& program, int instruction) {
  const Queue queue = at(program, instruction).queue;
  const std::int64_t ns = monotonic_ns() - begun_ns_[static_cast<std::size_t>(queue)];
  Kind* kind = table_of(program, queue).kinds[static_cast<std::size_t>(instruction)];
  if (kind == nullptr || is_skipped_[static_cast<std::size_t>(queue)]) return;
  if (ns < kind->least_ns.load(std::memory_order_relaxed))  // this thread alone writes it
    kind->least_ns.store(ns, std::memory_order_relaxed);
}

/// Adds what so many runs of a Program take at least.
void LeastTimes::add(const Table& table, std::int64_t runs, std::array<double, kQueues>& seconds) {
  if (runs == 0) return;
  for (std::size_t i = 0; i < table.kinds.size(); ++i) {
    if (table.kinds[i] == nullptr) continue;
    const std::int64_t ns = table.kinds[i]->least_ns.load(std::memory_order_relaxed);
    if (ns == kNever) continue;
    seconds[static_cast<std::size_t>(table.program->instructions[i].queue)] +=
        1e-9 * static_cast<double>(runs * ns);
  }
}

std::array<double, kQueues> LeastTimes::take(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  std::array<double, kQueues> seconds{};
  for (Table& table : tables_) {
    const std::int64_t runs = std::exchange(table.started[static_cast<std::size_t>(step) % 2], 0);
    table.summed += runs;
    add(table, runs, seconds);
  }
  return seconds;
}

void LeastTimes::forget(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  for (Table& table : tables_) table.started[static_cast<std::size_t>(step) % 2] = 0;
}

void LeastTimes::begin_sum() {
  const std::lock_guard lock(mutex_);
  for (Table& table : tables_) table.summed = 0;
}

std::array<double, kQueues> LeastTimes::sum() const {
  const std::lock_guard lock(mutex_);
  std::array<double, kQueues> seconds{};
  for (const Table& table : tables_) add(table, table.summed, seconds);
  return seconds;
}

}  // namespace strata::runtime
