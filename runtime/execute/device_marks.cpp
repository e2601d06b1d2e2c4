#include "runtime/execute/device_marks.h"

#include <atomic>
#include <utility>

namespace strata::runtime {
namespace {

/// Words lie in cache lines of their own.
constexpr std::int64_t kWordBytes = 64;
constexpr int kRunPlace = kQueues;
constexpr int kPlaces = kQueues + 1;

constexpr Queue kMarked[] = {Queue::compute, Queue::communication};

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
      words_(device.allocate(kernels::MemoryKind::pinned, kPlaces * kWordBytes)) {
  device_.clear_now(words_->base(), words_->bytes());
}

std::uint32_t* DeviceMarks::word(int place) const {
  return reinterpret_cast<std::uint32_t*>(words_->base() + place * kWordBytes);
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
  for (const Queue queue : kMarked) device_.mark(stream, word(queue), 0);
}

void DeviceMarks::begin_run(kernels::Stream& stream, RunNumber run) {
  device_.mark(stream, word(kRunPlace), run_word(run));
}

DeviceMarks::Words DeviceMarks::read() const {
  const auto load = [](std::uint32_t* from) {
    return std::atomic_ref<std::uint32_t>(*from).load(std::memory_order_acquire);
  };
  Words words;
  do {  // again if another run began meanwhile
    words.run = load(word(kRunPlace));
    for (const Queue queue : kMarked)
      words.queues[static_cast<std::size_t>(queue)] = load(word(queue));
  } while (load(word(kRunPlace)) != words.run);
  return words;
}

void DeviceMarks::tell(const Words& words, const DeviceRun* run) {
  for (const Queue queue : kMarked) tell(queue, mark_of(words, queue, run), run);
}

DeviceMarks::Mark DeviceMarks::mark_of(const Words& words, Queue queue, const DeviceRun* run) {
  const std::uint32_t value = words.queues[static_cast<std::size_t>(queue)];
  if (value == 0 || run == nullptr) return {};
  const Program& program = run->program->program;
  const Mark mark{&program, words.run, value};
  // The device wrote it: what makes no sense must not harm the run that is watched.
  return static_cast<std::size_t>(mark.index()) < program.instructions.size() ? mark : Mark{};
}

void DeviceMarks::tell(Queue queue, const Mark& now, const DeviceRun* run) {
  const Mark before = std::exchange(told_[static_cast<std::size_t>(queue)], now);
  if (now == before) return;
  if (before.is_under_way() && queue == Queue::communication) tell_end(before);
  if (now.value == 0) return;
  // A short one may have begun and ended since the last look.
  if (before == Mark{now.program, now.run, begun(now.index())}) return;
  tell_begin(*run, now.index());
  if (now.has_ended()) tell_end(now);
}

void DeviceMarks::tell_begin(const DeviceRun& run, std::int32_t index) {
  const std::int64_t number =
      run.collectives_before + run.program->collective_number[static_cast<std::size_t>(index)];
  for (Observer* observer : observers_) observer->seen_begin(run.program->program, index, number);
}

void DeviceMarks::tell_end(const Mark& mark) {
  for (Observer* observer : observers_) observer->seen_end(*mark.program, mark.index());
}

}  // namespace strata::runtime
