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
  std::vector<EventPointer> reached;  ///< by instruction; null where no other queue waits for it
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
  std::array<EventPointer, kQueues> inputs_read;
  EventPointer finished;
  std::vector<Span> spans;  ///< by instruction, only where times are wanted
};

class StreamExecutor final : public Executor {
 public:
  StreamExecutor(ExecutorParts parts, kernels::Device& device, Recordings recordings)
      : parts_(std::move(parts)), device_(device) {
    timed_ = std::ranges::any_of(parts_.observers,
                                 [](const Observer* o) { return o->wants_device_times(); });
    records_ = recordings == Recordings::on && !timed_;
    has_peers_ = parts_.communicators.have_peers();
    for (int q = 0; q < kQueues; ++q) {
      streams_[q] = device_.make_stream();
      queue_end_[q] = device_.make_event(EventUse::order);
    }
    joint_ = device_.make_event(EventUse::order);
    for (Slot& slot : slots_) {
      for (EventPointer& event : slot.inputs_read) event = device_.make_event(EventUse::host);
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
      if (error_ || (has_peers_ && confirmed_ < started_))
        parts_.communicators.abort("the executor went while a Program ran", ExitCode::internal);
    } catch (const std::exception&) {
      // Peers that cannot be told see that this rank leaves.
    }
    for (const auto& stream : streams_) try {
        device_.synchronize(*stream);
      } catch (const std::exception&) {
        // The device is of no more use; whoever waited for its work has been told.
      }
  }

  int load(Program program) override {
    auto loaded = std::make_unique<Loaded>();
    loaded->program = std::move(program);
    const Program& p = loaded->program;
    loaded->reached.resize(p.instructions.size());
    for (std::size_t i = 0; i < p.instructions.size(); ++i) {
      const Instruction& in = p.instructions[i];
      loaded->bound.push_back(bind_instruction(in, parts_, device_.kernels(), device_.backend()));
      if (in.predicate && !in.operation->predicated)
        throw InternalError("instruction '" + in.label + "' is predicated, which operation '" +
                            std::string(in.operation->name) + "' does not know");
      for (std::int32_t other : in.waits)
        if (EventPointer& event = loaded->reached[static_cast<std::size_t>(other)]; !event)
          event = device_.make_event(EventUse::order);
      if (reads_staged_input(p, in)) loaded->inputs_end = static_cast<std::int32_t>(i) + 1;
    }
    cut(*loaded);
    loaded_.push_back(std::move(loaded));
    return static_cast<int>(loaded_.size()) - 1;
  }

  [[nodiscard]] const Program& program(int handle) const override {
    return loaded_[static_cast<std::size_t>(handle)]->program;
  }

  RunNumber start(int handle, std::int64_t step) override {
    rethrow();
    if (started_ >= kInFlight) confirm(started_ - kInFlight);
    Loaded& loaded = *loaded_[static_cast<std::size_t>(handle)];
    Slot& slot = slots_[started_ % kInFlight];
    slot.loaded = &loaded;
    device_.bind_thread();
    for (Observer* observer : parts_.observers) observer->begin_program(loaded.program, step);
    const Range range(device_, loaded.program.name.c_str());
    guard("program '" + loaded.program.name + "'", [&] {
      if (records_ && loaded.runs > 0)
        run_recorded(loaded, slot);
      else
        run_plainly(loaded, slot);
      device_.record(stream(Queue::compute), *slot.finished);
    });
    ++loaded.runs;
    return started_++;
  }

  void wait_inputs_read(RunNumber number) override {
    STRATA_CHECK(number < started_, number, started_);
    rethrow();
    if (number < confirmed_) return;
    Slot& slot = slots_[number % kInFlight];
    guard_run(slot, [&] {
      for (const EventPointer& event : slot.inputs_read) await(*event);
    });
  }

  void wait(RunNumber number) override {
    STRATA_CHECK(number < started_, number, started_);
    rethrow();
    confirm(number);
  }

  void wait_all() override {
    rethrow();
    if (started_ > 0) confirm(started_ - 1);
  }

  void forget_recordings() override {
    wait_all();
    for (const auto& loaded : loaded_)
      for (Stretch& stretch : loaded->stretches) stretch.recording.reset();
  }

 private:
  static constexpr std::int64_t kInFlight = 2;

  static std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  kernels::Stream& stream(Queue queue) { return *streams_[static_cast<int>(queue)]; }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

  /// Runs `body`; its error poisons the executor, wakes the peers and goes on.
  template <typename Body>
  void guard(const std::string& what, const Body& body) {
    try {
      body();
    } catch (const std::exception& error) {
      if (error_) throw;  // an inner guard has told everybody
      const auto* known = dynamic_cast<const Error*>(&error);
      const ExitCode code = known != nullptr ? known->exit_code() : ExitCode::internal;
      const std::string message = what + " failed: " + error.what();
      error_ = std::make_exception_ptr(Error(code, message));
      const comm::Communicators& ranks = parts_.communicators;
      const std::string who =
          ranks.has(comm::MeshAxis::data)
              ? "rank " + std::to_string(ranks.of(comm::MeshAxis::data).rank()) + ": "
              : "";
      ranks.abort(who + message, code);
      std::rethrow_exception(error_);
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
        for (int q = 0; q < kQueues; ++q) device_.record(*streams_[q], *slot.inputs_read[q]);
      if (i == count) break;
      const Instruction& in = p.instructions[static_cast<std::size_t>(i)];
      if (started_ > 0)
        for (int q = 0; q < kQueues; ++q)
          if ((in.border_waits >> q & 1u) != 0) device_.wait(stream(in.queue), *queue_end_[q]);
      enqueue(loaded, i, stream(in.queue), 0, timed_ ? &slot : nullptr);
    }
    // The compute stream's end is the run's.
    for (int q = 0; q < kQueues; ++q) {
      device_.record(*streams_[q], *queue_end_[q]);
      if (q != kCompute) device_.wait(stream(Queue::compute), *queue_end_[q]);
    }
    device_.record(stream(Queue::compute), *queue_end_[kCompute]);
  }

  /// Everything on the compute stream, stretch by stretch; inside a stretch queues run side by
  /// side.
  void run_recorded(Loaded& loaded, Slot& slot) {
    kernels::Stream& on = stream(Queue::compute);
    for (int q = 0; q < kQueues; ++q)
      if (q != kCompute) device_.wait(on, *queue_end_[q]);
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
    for (int q = 0; q < kQueues; ++q) device_.record(on, *queue_end_[q]);
    // A plain run that follows starts its queues behind this one.
    for (int q = 0; q < kQueues; ++q)
      if (q != kCompute) device_.wait(*streams_[q], *queue_end_[kCompute]);
  }

  void record_inputs_read(Slot& slot) {
    for (EventPointer& event : slot.inputs_read) device_.record(stream(Queue::compute), *event);
  }

  void record(Loaded& loaded, Stretch& stretch) {
    kernels::Stream& origin = stream(Queue::compute);
    std::array<bool, kQueues> used{};
    for (std::int32_t i = stretch.first; i < stretch.last; ++i)
      used[static_cast<int>(loaded.program.instructions[static_cast<std::size_t>(i)].queue)] = true;
    device_.begin_recording(origin);
    try {
      device_.record(origin, *joint_);
      for (int q = 0; q < kQueues; ++q)
        if (q != kCompute && used[q]) device_.wait(*streams_[q], *joint_);
      for (std::int32_t i = stretch.first; i < stretch.last; ++i)
        enqueue(loaded, i, stream(loaded.program.instructions[static_cast<std::size_t>(i)].queue),
                stretch.first, nullptr);
      for (int q = 0; q < kQueues; ++q) {
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
    for (std::int32_t other : in.waits)
      if (other >= from) device_.wait(on, *loaded.reached[static_cast<std::size_t>(other)]);
    if (times != nullptr) device_.record(on, *times->spans[at].begin);
    const Range range(device_, in.label.c_str());
    guard("instruction '" + in.label + "'", [&] {
      for (Observer* observer : parts_.observers) observer->begin(loaded.program, index);
      if (in.collective)
        bound.communicator->run(on, *in.collective, bound.inputs[0].data, bound.outputs[0].data,
                                bound.workspace);
      else
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
      Slot& slot = slots_[confirmed_ % kInFlight];
      guard_run(slot, [&] { await(*slot.finished); });
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
  std::array<Slot, kInFlight> slots_;
  std::int64_t started_ = 0;
  std::int64_t confirmed_ = 0;  ///< runs known to have completed
  std::exception_ptr error_;
};

}  // namespace

std::unique_ptr<Executor> make_stream_executor(ExecutorParts parts, kernels::Device& device,
                                               Recordings recordings) {
  return std::make_unique<StreamExecutor>(std::move(parts), device, recordings);
}

}  // namespace strata::runtime
