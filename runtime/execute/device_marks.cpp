#include "runtime/execute/device_marks.h"

#include <atomic>

namespace strata::runtime {
namespace {

/// Words of two queues lie in cache lines of their own.
constexpr std::int64_t kWordBytes = 64;

/// True if `index` is the first instruction of its block and pass on the compute queue.
bool begins_block(const Program& program, std::int32_t index) {
  const auto at = [&](std::int32_t i) -> const Instruction& {
    return program.instructions[static_cast<std::size_t>(i)];
  };
  if (at(index).queue != Queue::compute) return false;
  std::int32_t before = index - 1;
  while (before >= 0 && at(before).queue != Queue::compute) --before;
  return before < 0 || at(before).block != at(index).block || at(before).pass != at(index).pass;
}

bool is_collective(const DeviceProgram& loaded, std::int32_t index) {
  return loaded.bound[static_cast<std::size_t>(index)].communicator != nullptr;
}

}  // namespace

DeviceMarks::DeviceMarks(kernels::Device& device, const std::vector<Observer*>& observers)
    : device_(device),
      observers_(observers),
      words_(device.allocate(kernels::MemoryKind::pinned, kQueues * kWordBytes)) {
  device_.clear_now(words_->base(), words_->bytes());
}

std::uint32_t* DeviceMarks::word(Queue queue) const {
  return reinterpret_cast<std::uint32_t*>(words_->base() + static_cast<int>(queue) * kWordBytes);
}

void DeviceMarks::begin(kernels::Stream& stream, const DeviceProgram& loaded, std::int32_t index) {
  const Queue queue = loaded.program.instructions[static_cast<std::size_t>(index)].queue;
  if (is_collective(loaded, index) || begins_block(loaded.program, index))
    device_.mark(stream, word(queue), begun(index));
}

void DeviceMarks::end(kernels::Stream& stream, const DeviceProgram& loaded, std::int32_t index) {
  const Queue queue = loaded.program.instructions[static_cast<std::size_t>(index)].queue;
  if (is_collective(loaded, index)) device_.mark(stream, word(queue), ended(index));
}

void DeviceMarks::clear(kernels::Stream& stream) {
  device_.mark(stream, word(Queue::compute), 0);
  device_.mark(stream, word(Queue::communication), 0);
}

void DeviceMarks::look(const DeviceRun& run) {
  look(run, Queue::compute);
  look(run, Queue::communication);
}

void DeviceMarks::look(const DeviceRun& run, Queue queue) {
  const std::uint32_t now =
      std::atomic_ref<std::uint32_t>(*word(queue)).load(std::memory_order_acquire);
  std::uint32_t& seen = seen_[static_cast<std::size_t>(queue)];
  if (now == seen) return;
  const auto index_of = [](std::uint32_t value) {
    return static_cast<std::int32_t>((value - 1) / 2);
  };
  const bool has_ended = now != 0 && now == ended(index_of(now));
  const bool was_under_way = seen != 0 && seen == begun(index_of(seen));
  if (was_under_way && queue == Queue::communication) tell_end(run, index_of(seen));
  // A short one may have begun and ended since the last look.
  if (now != 0 && seen != begun(index_of(now))) tell_begin(run, index_of(now));
  if (has_ended && seen != begun(index_of(now))) tell_end(run, index_of(now));
  seen = now;
}

void DeviceMarks::tell_begin(const DeviceRun& run, std::int32_t index) {
  const std::int64_t number =
      run.collectives_before + run.program->collective_number[static_cast<std::size_t>(index)];
  for (Observer* observer : observers_) observer->seen_begin(run.program->program, index, number);
}

void DeviceMarks::tell_end(const DeviceRun& run, std::int32_t index) {
  for (Observer* observer : observers_) observer->seen_end(run.program->program, index);
}

}  // namespace strata::runtime
