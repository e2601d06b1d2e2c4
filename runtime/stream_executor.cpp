// The executor of devices that work beside the host.
#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "runtime/bound_instruction.h"
#include "runtime/executor.h"
#include "runtime/host_queues.h"
#include "runtime/run_failure.h"

namespace strata::runtime {
namespace {

using kernels::EventUse;
using EventPointer = std::unique_ptr<kernels::Event>;

constexpr int kCompute = static_cast<int>(Queue::compute);
constexpr std::chrono::microseconds kPoll{50};
constexpr std::chrono::milliseconds kLookForPeers{100};

/// Consecutive instructions that the device can run without the host, or one that needs the host.
struct Stretch {
  std::int32_t first = 0;
  std::int32_t last = 0;  ///< one past
  bool on_host = false;
  std::unique_ptr<kernels::Recording> recording;
};

struct Loaded {
  Program program;
  std::vector<BoundInstruction> bound;
  std::vector<EventPointer> reached;  ///< by instruction; null where no other stream waits for it
  /// The same for waits of the host, by the run's slot.
  std::array<std::vector<EventPointer>, HostQueues::kSlots> completed;
  HostProgram on_host;
  std::vector<Stretch> stretches;
  std::int32_t inputs_end = 0;  ///< behind the last instruction that reads a staged input
  std::int64_t runs = 0;
};

/// Where one instruction began and ended on the device.
struct Span {
  EventPointer begin, end;
};

/// A range of profilers while it lives.
class Range {
 public:
  Range(kernels::Device& device, const char* name) : device_(device) { device_.begin_range(name); }
  ~Range() { device_.end_range(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  kernels::Device& device_;
};

/// A place for one run under way.
struct Slot {
  const Loaded* loaded = nullptr;
  std::array<EventPointer, kQueues> inputs_read;  ///< null of what the host serves
  std::array<EventPointer, kQueues> ended;        ///< of this run, for waits of the host
  EventPointer finished;
  QueueProgress enqueued;   ///< the list up to here; host queues may ask for its events
  std::vector<Span> spans;  ///< by instruction, only where times are wanted
};

class StreamExecutor final : public Executor, private DeviceSide {
 public:
  StreamExecutor(ExecutorParts parts, kernels::Device& device, Recordings recordings)
      : parts_(std::move(parts)), device_(device), host_(parts_, *this) {
    timed_ = std::ranges::any_of(parts_.observers,
                                 [](const Observer* o) { return o->wants_device_times(); });
    records_ = recordings == Recordings::on && !timed_;
    has_peers_ = parts_.communicators.have_peers();
    for (const int q : kDeviceQueues) {
      streams_[q] = device_.make_stream();
      queue_end_[q] = device_.make_event(EventUse::order);
    }
    joint_ = device_.make_event(EventUse::order);
    for (Slot& slot : slots_) {
      for (const int q : kDeviceQueues) {
        slot.inputs_read[q] = device_.make_event(EventUse::host);
        slot.ended[q] = device_.make_event(EventUse::host);
      }
      slot.finished = device_.make_event(EventUse::host);
    }
    if (!timed_) return;
    // One moment by both clocks.
    epoch_ = device_.make_event(EventUse::timing);
    device_.record(*streams_[kCompute], *epoch_);
    device_.wait_on_host(*epoch_);
    epoch_ns_ = now_ns();
  }

  /// Memory that enqueued work touches goes after this, so it waits; an abort frees whoever waits
  /// for peers.
  ~StreamExecutor() override {
    try {
      if (failure_.is_poisoned() || (has_peers_ && confirmed_ < started_))
        parts_.communicators.abort("the executor went while a Program ran", ExitCode::internal);
    } catch (const std::exception&) {
      // Peers that cannot be told see that this rank leaves.
    }
    stop_host_queues();
    for (const int q : kDeviceQueues) try {
        device_.synchronize(*streams_[q]);
      } catch (const std::exception&) {
        // The device is of no more use; whoever waited for its work has been told.
      }
  }

  int load(Program program) override {
    auto loaded = std::make_unique<Loaded>();
    loaded->program = std::move(program);
    const Program& p = loaded->program;
    loaded->reached.resize(p.instructions.size());
    for (auto& completed : loaded->completed) completed.resize(p.instructions.size());
    for (std::size_t i = 0; i < p.instructions.size(); ++i) {
      const Instruction& in = p.instructions[i];
      loaded->bound.push_back(
          bind_instruction(p, in, parts_, device_.kernels(), device_.backend()));
      if (in.predicate && !in.operation->predicated)
        throw InternalError("instruction '" + in.label + "' is predicated, which operation '" +
                            std::string(in.operation->name) + "' does not know");
      for (std::int32_t other : in.waits) make_events(*loaded, in, other);
      if (reads_staged_input(p, in) && !is_host_queue(in.queue))
        loaded->inputs_end = static_cast<std::int32_t>(i) + 1;
    }
    loaded->on_host = host_program(p, loaded->bound);
    if (!loaded->on_host.empty()) host_.start_threads();
    cut(*loaded);
    loaded_.push_back(std::move(loaded));
    return static_cast<int>(loaded_.size()) - 1;
  }

  [[nodiscard]] const Program& program(int handle) const override {
    return loaded_[static_cast<std::size_t>(handle)]->program;
  }

  RunNumber start(int handle, std::int64_t step) override {
    failure_.rethrow();
    if (started_ >= kInFlight) confirm(started_ - kInFlight);
    Loaded& loaded = *loaded_[static_cast<std::size_t>(handle)];
    Slot& slot = slot_of(started_);
    slot.loaded = &loaded;
    slot.enqueued.reset();
    device_.bind_thread();
    host_.begin(started_, loaded.on_host);
    for (Observer* observer : parts_.observers) observer->begin_program(loaded.program, step);
    const Range range(device_, loaded.program.name.c_str());
    guard("program '" + loaded.program.name + "'", [&] {
      // A recording runs as a whole; host queues want to know how far the device has come.
      if (records_ && loaded.runs > 0 && loaded.on_host.empty())
        run_recorded(loaded, slot);
      else
        run_plainly(loaded, slot);
      device_.record(stream(Queue::compute), *slot.finished);
      slot.enqueued.advance(kFinished);
    });
    ++loaded.runs;
    return started_++;
  }

  void wait_inputs_read(RunNumber number) override {
    STRATA_CHECK(number < started_, number, started_);
    failure_.rethrow();
    if (number < confirmed_) return;
    Slot& slot = slot_of(number);
    guard_run(slot, [&] {
      for (const int q : kDeviceQueues) await(*slot.inputs_read[q]);
    });
  }

  void wait(RunNumber number) override {
    STRATA_CHECK(number < started_, number, started_);
    failure_.rethrow();
    confirm(number);
  }

  void wait_all() override {
    failure_.rethrow();
    if (started_ > 0) confirm(started_ - 1);
  }

  void forget_recordings() override {
    wait_all();
    for (const auto& loaded : loaded_)
      for (Stretch& stretch : loaded->stretches) stretch.recording.reset();
  }

 private:
  static constexpr std::int64_t kInFlight = 2;
  /// Queues that are streams.
  static constexpr std::array<int, 4> kDeviceQueues{
      static_cast<int>(Queue::compute), static_cast<int>(Queue::communication),
      static_cast<int>(Queue::upload), static_cast<int>(Queue::download)};

  Slot& slot_of(RunNumber number) { return slots_[number % HostQueues::kSlots]; }

  static std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  kernels::Stream& stream(Queue queue) { return *streams_[static_cast<int>(queue)]; }

  static constexpr bool is_link_queue(Queue queue) {
    return queue == Queue::upload || queue == Queue::download;
  }

  /// Of instruction `i` in a run, for waits of the host.
  static const EventPointer& completed_event(const Loaded& loaded, RunNumber run, std::int32_t i) {
    return loaded.completed[run % HostQueues::kSlots][static_cast<std::size_t>(i)];
  }

  /// `in` waits for instruction `other`.
  void make_events(Loaded& loaded, const Instruction& in, std::int32_t other) {
    const auto o = static_cast<std::size_t>(other);
    if (is_host_queue(loaded.program.instructions[o].queue)) return;
    if (is_host_queue(in.queue)) {
      for (auto& completed : loaded.completed)
        if (!completed[o]) completed[o] = device_.make_event(EventUse::host);
    } else if (!loaded.reached[o]) {
      loaded.reached[o] = device_.make_event(EventUse::order);
    }
  }

  /// The first instruction of a queue behind what it names of the run before.
  void wait_at_border(const Instruction& in) {
    for (const Queue queue : kAllQueues) {
      if ((in.border_waits >> static_cast<int>(queue) & 1u) == 0) continue;
      if (is_host_queue(queue)) {
        await_host(started_ - 1, queue, kFinished);
      } else {
        device_.wait(stream(in.queue), *queue_end_[static_cast<std::size_t>(queue)]);
      }
    }
  }

  void wait_for_host_of_run_before() {
    if (started_ == 0) return;
    for (const Queue queue : kAllQueues)
      if (is_host_queue(queue)) await_host(started_ - 1, queue, kFinished);
  }

  // What host queues ask, on their threads.
  [[nodiscard]] bool has_completed(RunNumber run, std::int32_t instruction) override {
    Slot& slot = slot_of(run);
    return is_poisoned() || (slot.enqueued.has_reached(instruction) &&
                             device_.reached(*completed_event(*slot.loaded, run, instruction)));
  }
  void wait_completed(RunNumber run, std::int32_t instruction) override {
    Slot& slot = slot_of(run);
    slot.enqueued.wait_for(instruction);
    if (!is_poisoned()) device_.wait_on_host(*completed_event(*slot.loaded, run, instruction));
  }
  void wait_ended(RunNumber run, Queue queue) override {
    Slot& slot = slot_of(run);
    slot.enqueued.wait_for(kFinished);
    if (!is_poisoned()) device_.wait_on_host(*slot.ended[static_cast<std::size_t>(queue)]);
  }
  [[nodiscard]] bool is_poisoned() const override { return failure_.is_poisoned(); }
  void poison(const Instruction& in, const std::exception& error) override {
    failure_.tell("instruction '" + in.label + "'", error);
  }
  void bind_thread() override { device_.bind_thread(); }

  /// Whoever waits for what is never enqueued goes on, sees the poison and ends.
  void stop_host_queues() {
    failure_.poison();
    for (Slot& slot : slots_) slot.enqueued.advance(kFinished);
    host_.stop();
  }

  /// Until host queues have ended their part of a run.
  void await_host(RunNumber run) {
    for (const Queue queue : kAllQueues)
      if (is_host_queue(queue)) await_host(run, queue, kFinished);
  }

  /// Until a host queue has come to an instruction, as long as the peers live: what it waits for on
  /// the device may wait for them.
  void await_host(RunNumber run, Queue queue, std::int32_t instruction) {
    if (!has_peers_) {
      host_.wait(run, queue, instruction);
      return failure_.rethrow();
    }
    auto look = std::chrono::steady_clock::now() + kLookForPeers;
    while (!host_.has_reached(run, queue, instruction)) {
      std::this_thread::sleep_for(kPoll);
      if (std::chrono::steady_clock::now() < look) continue;
      parts_.communicators.check();
      look = std::chrono::steady_clock::now() + kLookForPeers;
    }
    failure_.rethrow();
  }

  /// Runs `body`; its error poisons the executor, wakes the peers and goes on.
  template <typename Body>
  void guard(const std::string& what, const Body& body) {
    try {
      body();
    } catch (const std::exception& error) {
      failure_.tell(what, error);  // unless an inner guard or a host queue has told everybody
      // Host queues may wait for what will not be enqueued any more.
      for (Slot& slot : slots_) slot.enqueued.advance(kFinished);
      failure_.rethrow();
    }
  }

  template <typename Body>
  void guard_run(const Slot& slot, const Body& body) {
    guard("program '" + slot.loaded->program.name + "' on the device", body);
  }

  /// Where the host has to act, and where it may write inputs again, a stretch ends.
  void cut(Loaded& loaded) const {
    const auto count = static_cast<std::int32_t>(loaded.bound.size());
    Stretch open;
    const auto close = [&](std::int32_t at) {
      open.last = at;
      if (open.last > open.first) loaded.stretches.push_back(std::move(open));
      open = Stretch{at, at, false, nullptr};
    };
    for (std::int32_t i = 0; i < count; ++i) {
      if (i == loaded.inputs_end) close(i);
      const comm::Communicator* communicator =
          loaded.bound[static_cast<std::size_t>(i)].communicator;
      if (communicator == nullptr || !communicator->runs_on_host()) continue;
      close(i);
      open.on_host = true;
      close(i + 1);
    }
    close(count);
  }

  void run_plainly(Loaded& loaded, Slot& slot) {
    const Program& p = loaded.program;
    if (timed_) make_spans(slot, p.instructions.size());
    const auto count = static_cast<std::int32_t>(p.instructions.size());
    for (std::int32_t i = 0; i <= count; ++i) {
      if (i == loaded.inputs_end)
        for (const int q : kDeviceQueues) device_.record(*streams_[q], *slot.inputs_read[q]);
      if (i == count) break;
      const Instruction& in = p.instructions[static_cast<std::size_t>(i)];
      if (is_host_queue(in.queue)) continue;
      if (started_ > 0 && in.border_waits != 0) wait_at_border(in);
      enqueue(loaded, i, stream(in.queue), 0, timed_ ? &slot : nullptr);
      if (const EventPointer& event = completed_event(loaded, started_, i))
        device_.record(stream(in.queue), *event);
      slot.enqueued.advance(i);
    }
    // The compute stream's end is the run's.
    for (const int q : kDeviceQueues) {
      device_.record(*streams_[q], *queue_end_[q]);
      device_.record(*streams_[q], *slot.ended[q]);
      if (q != kCompute) device_.wait(stream(Queue::compute), *queue_end_[q]);
    }
    device_.record(stream(Queue::compute), *queue_end_[kCompute]);
  }

  /// Everything on the compute stream, stretch by stretch; inside a stretch queues run side by
  /// side.
  void run_recorded(Loaded& loaded, Slot& slot) {
    kernels::Stream& on = stream(Queue::compute);
    for (const int q : kDeviceQueues)
      if (q != kCompute) device_.wait(on, *queue_end_[q]);
    wait_for_host_of_run_before();
    if (loaded.inputs_end == 0) record_inputs_read(slot);
    for (Stretch& stretch : loaded.stretches) {
      if (stretch.on_host) {
        enqueue(loaded, stretch.first, on, stretch.first, nullptr);
      } else {
        if (!stretch.recording) record(loaded, stretch);
        device_.replay(on, *stretch.recording);
      }
      if (stretch.last == loaded.inputs_end) record_inputs_read(slot);
    }
    for (const int q : kDeviceQueues) {
      device_.record(on, *queue_end_[q]);
      device_.record(on, *slot.ended[q]);
    }
    // A plain run that follows starts its queues behind this one.
    for (const int q : kDeviceQueues)
      if (q != kCompute) device_.wait(*streams_[q], *queue_end_[kCompute]);
  }

  void record_inputs_read(Slot& slot) {
    for (const int q : kDeviceQueues) device_.record(stream(Queue::compute), *slot.inputs_read[q]);
  }

  void record(Loaded& loaded, Stretch& stretch) {
    kernels::Stream& origin = stream(Queue::compute);
    std::array<bool, kQueues> used{};
    for (std::int32_t i = stretch.first; i < stretch.last; ++i)
      used[static_cast<int>(loaded.program.instructions[static_cast<std::size_t>(i)].queue)] = true;
    device_.begin_recording(origin);
    try {
      device_.record(origin, *joint_);
      for (const int q : kDeviceQueues)
        if (q != kCompute && used[q]) device_.wait(*streams_[q], *joint_);
      for (std::int32_t i = stretch.first; i < stretch.last; ++i)
        enqueue(loaded, i, stream(loaded.program.instructions[static_cast<std::size_t>(i)].queue),
                stretch.first, nullptr);
      for (const int q : kDeviceQueues) {
        if (q == kCompute || !used[q]) continue;
        device_.record(*streams_[q], *joint_);
        device_.wait(origin, *joint_);
      }
    } catch (...) {
      device_.abandon_recording(origin);
      throw;
    }
    stretch.recording = device_.end_recording(origin);
  }

  /// One instruction on `on`. Waits for instructions before `from` are already met.
  void enqueue(Loaded& loaded, std::int32_t index, kernels::Stream& on, std::int32_t from,
               Slot* times) {
    const auto at = static_cast<std::size_t>(index);
    const Instruction& in = loaded.program.instructions[at];
    const BoundInstruction& bound = loaded.bound[at];
    for (std::int32_t other : in.waits) {
      const Queue queue = loaded.program.instructions[static_cast<std::size_t>(other)].queue;
      if (is_host_queue(queue)) {
        // The device cannot wait for the host; what stands behind this in the list waits, too.
        await_host(started_, queue, other);
      } else if (other >= from) {
        device_.wait(on, *loaded.reached[static_cast<std::size_t>(other)]);
      }
    }
    if (times != nullptr) device_.record(on, *times->spans[at].begin);
    const Range range(device_, in.label.c_str());
    guard("instruction '" + in.label + "'", [&] {
      for (Observer* observer : parts_.observers) observer->begin(loaded.program, index);
      if (in.collective)
        bound.communicator->run(on, *in.collective, bound.inputs[0].data, bound.outputs[0].data,
                                bound.workspace);
      else if (is_link_queue(in.queue) && bound.predicate == nullptr)
        device_.copy(on, bound.outputs[0].data, bound.inputs[0].data, in.outputs[0].bytes);
      else  // also predicated copies over the link, which copy engines do not know
        bound.kernel(
            on, {bound.inputs, bound.outputs, bound.workspace, in.attributes, bound.predicate});
      for (Observer* observer : parts_.observers) observer->end(loaded.program, index);
    });
    if (times != nullptr) device_.record(on, *times->spans[at].end);
    if (loaded.reached[at]) device_.record(on, *loaded.reached[at]);
  }

  /// Until the device has reached `event`, as long as the peers live.
  void await(const kernels::Event& event) {
    if (!has_peers_) return device_.wait_on_host(event);
    auto look = std::chrono::steady_clock::now() + kLookForPeers;
    while (!device_.reached(event)) {
      std::this_thread::sleep_for(kPoll);
      if (std::chrono::steady_clock::now() < look) continue;
      parts_.communicators.check();
      look = std::chrono::steady_clock::now() + kLookForPeers;
    }
  }

  /// Waits for run `number` and all before it.
  void confirm(RunNumber number) {
    for (; confirmed_ <= number; ++confirmed_) {
      Slot& slot = slot_of(confirmed_);
      guard_run(slot, [&] {
        await(*slot.finished);
        await_host(confirmed_);
      });
      if (timed_) report_times(slot);
    }
  }

  void make_spans(Slot& slot, std::size_t count) {
    while (slot.spans.size() < count)
      slot.spans.push_back(
          {device_.make_event(EventUse::timing), device_.make_event(EventUse::timing)});
  }

  void report_times(const Slot& slot) {
    const auto ns = [&](const kernels::Event& event) {
      return epoch_ns_ + static_cast<std::int64_t>(device_.milliseconds(*epoch_, event) * 1e6);
    };
    const Program& p = slot.loaded->program;
    for (std::size_t i = 0; i < p.instructions.size(); ++i) {
      if (is_host_queue(p.instructions[i].queue)) continue;  // told when it ran
      const std::int64_t begin = ns(*slot.spans[i].begin), end = ns(*slot.spans[i].end);
      for (Observer* observer : parts_.observers)
        observer->executed(p, static_cast<int>(i), begin, end);
    }
  }

  ExecutorParts parts_;
  kernels::Device& device_;
  bool timed_ = false;
  bool records_ = true;
  bool has_peers_ = false;
  std::array<std::unique_ptr<kernels::Stream>, kQueues> streams_;
  std::array<EventPointer, kQueues> queue_end_;  ///< of the last run
  EventPointer joint_;                           ///< forks and joins inside recordings
  EventPointer epoch_;
  std::int64_t epoch_ns_ = 0;
  std::vector<std::unique_ptr<Loaded>> loaded_;
  std::array<Slot, HostQueues::kSlots> slots_;  ///< one more than in flight: see HostQueues
  std::int64_t started_ = 0;
  std::int64_t confirmed_ = 0;  ///< runs known to have completed
  RunFailure failure_{parts_.communicators};
  HostQueues host_;  ///< last: its threads use the rest
};

}  // namespace

std::unique_ptr<Executor> make_stream_executor(ExecutorParts parts, kernels::Device& device,
                                               Recordings recordings) {
  return std::make_unique<StreamExecutor>(std::move(parts), device, recordings);
}

}  // namespace strata::runtime
