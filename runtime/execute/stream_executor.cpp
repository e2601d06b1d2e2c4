// The executor for devices that work beside the host: it enqueues Programs, unrecorded or recorded,
// and waits for them.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/error.h"
#include "runtime/execute/device_marks.h"
#include "runtime/execute/device_program.h"
#include "runtime/execute/device_runs.h"
#include "runtime/execute/device_times.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/host_queues.h"
#include "runtime/execute/run_failure.h"

namespace strata::runtime {
namespace {

using kernels::EventUse;

constexpr int kCompute = static_cast<int>(Queue::compute);
constexpr std::chrono::microseconds kPoll{50};
constexpr std::chrono::milliseconds kLookForPeers{100};

/// Shows a range in profilers during its lifetime.
class Range {
 public:
  Range(kernels::Device& device, const char* name) : device_(device) { device_.begin_range(name); }
  ~Range() { device_.end_range(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  kernels::Device& device_;
};

class StreamExecutor final : public Executor {
 public:
  StreamExecutor(ExecutorParts parts, kernels::Device& device, Recordings recordings)
      : parts_(std::move(parts)), device_(device) {
    const bool timed = std::ranges::any_of(
        parts_.observers, [](const Observer* o) { return o->wants_device_times(); });
    records_ = recordings == Recordings::on && !timed;
    has_peers_ = parts_.communicators.have_peers();
    const bool marks =
        std::ranges::any_of(parts_.observers, [](const Observer* o) { return o->wants_marks(); });
    if (records_ && has_peers_ && marks) {
      marks_.emplace(device_, parts_.observers);
      records_marks_ = true;
    }
    for (const int q : kDeviceQueues) {
      streams_[q] = device_.make_stream();
      queue_end_[q] = device_.make_event(EventUse::order);
    }
    joint_ = device_.make_event(EventUse::order);
    if (timed) times_.emplace(device_, stream(Queue::compute));
  }

  /// Waits, because memory that enqueued work touches is freed afterwards; an abort frees threads
  /// that wait for peers.
  ~StreamExecutor() override {
    try {
      if (failure_.is_poisoned() || (has_peers_ && confirmed_ < started_))
        parts_.communicators.abort("the executor went while a Program ran", ExitCode::internal);
    } catch (const std::exception&) {
      // Peers that cannot be told notice that this rank leaves.
    }
    failure_.poison();
    runs_.release();
    host_.stop();
    for (const int q : kDeviceQueues) try {
        device_.synchronize(*streams_[q]);
      } catch (const std::exception&) {
        // The device is of no more use; threads that waited for its work have been told.
      }
  }
  StreamExecutor(const StreamExecutor&) = delete;
  StreamExecutor& operator=(const StreamExecutor&) = delete;

  int load(Program program) override {
    loaded_.push_back(make_device_program(std::move(program), parts_, device_));
    if (!loaded_.back()->on_host.empty()) host_.start_threads();
    if (peers_ == nullptr) peers_ = loaded_.back()->communicator;
    return static_cast<int>(loaded_.size()) - 1;
  }

  [[nodiscard]] const Program& program(int handle) const override {
    return loaded_[static_cast<std::size_t>(handle)]->program;
  }

  RunNumber start(int handle, std::int64_t step) override {
    failure_.rethrow();
    if (started_ >= kInFlight) confirm(started_ - kInFlight);
    DeviceProgram& loaded = *loaded_[static_cast<std::size_t>(handle)];
    DeviceRun& run = runs_.begin(started_, loaded);
    run.step = step;
    device_.bind_thread();
    for (Observer* observer : parts_.observers) observer->starting(loaded.program, step);
    host_.begin(started_, loaded.on_host);
    if (confirmed_ == started_) tell_begins(started_);
    const Range range(device_, loaded.program.name.c_str());
    guard("program '" + loaded.program.name + "'", [&] {
      if (has_recordings(loaded))
        run_recorded(loaded, run);
      else
        run_plainly(loaded, run);
      device_.record(stream(Queue::compute), *run.finished);
      run.enqueued.advance(kFinished);
    });
    ++loaded.runs;
    return started_++;
  }

  void wait_inputs_read(RunNumber number) override {
    STRATA_CHECK(number < started_, number, started_);
    failure_.rethrow();
    if (number < confirmed_) return;
    const DeviceRun& run = runs_.of(number);
    guard_run(run, [&] {
      for (const int q : kDeviceQueues) await(*run.inputs_read[q]);
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
    for (const auto& loaded : loaded_) {
      for (Stretch& stretch : loaded->stretches) stretch.recording.reset();
      loaded->is_recorded = false;
    }
  }

  [[nodiscard]] std::vector<std::string> notes() const override { return notes_; }

 private:
  static constexpr std::int64_t kInFlight = 2;

  kernels::Stream& stream(Queue queue) { return *streams_[static_cast<int>(queue)]; }

  static constexpr bool is_link_queue(Queue queue) {
    return queue == Queue::upload || queue == Queue::download;
  }

  /// Makes the queue of `in` wait for the queues of the run before that `in` names.
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

  /// Waits until host queues have ended their part of a run.
  void await_host(RunNumber run) {
    for (const Queue queue : kAllQueues)
      if (is_host_queue(queue)) await_host(run, queue, kFinished);
  }

  /// Waits until a host queue has completed an instruction, as long as the peers live: the
  /// instruction may wait for device work that waits for them.
  void await_host(RunNumber run, Queue queue, std::int32_t instruction) {
    if (has_peers_)
      poll_peers_until([&] { return host_.has_reached(run, queue, instruction); });
    else
      host_.wait(run, queue, instruction);
    failure_.rethrow();
  }

  /// Waits until the device has reached `event`, as long as the peers live.
  void await(const kernels::Event& event) {
    if (has_peers_)
      poll_peers_until([&] { return device_.reached(event); });
    else
      device_.wait_on_host(event);
  }

  /// Throws PeerError if a peer has died meanwhile.
  template <typename Holds>
  void poll_peers_until(const Holds& holds) {
    auto look = std::chrono::steady_clock::now() + kLookForPeers;
    while (!holds()) {
      std::this_thread::sleep_for(kPoll);
      look_at_marks();
      if (std::chrono::steady_clock::now() < look) continue;
      parts_.communicators.check();
      look = std::chrono::steady_clock::now() + kLookForPeers;
    }
  }

  /// Shows how far the device has come, often in a later run than the one that the host waits for.
  void look_at_marks() {
    if (!marks_) return;
    const DeviceMarks::Words words = marks_->read();
    RunNumber run = confirmed_;
    while (run < started_ && !words.are_of(run)) ++run;
    if (run < started_) tell_begins(run);
    marks_->tell(words, run < started_ ? &runs_.of(run) : nullptr);
  }

  /// Runs `body`; an error poisons the executor, wakes the peers and is rethrown.
  template <typename Body>
  void guard(const std::string& what, const Body& body) {
    try {
      body();
    } catch (const std::exception& error) {
      // A failed recording has run nothing, so the same work may be enqueued unrecorded.
      if (is_recording_ && dynamic_cast<const HostError*>(&error) != nullptr)
        throw HostError(what + " failed: " + error.what());
      failure_.tell(what, error);  // no effect if somebody has told it before
      // Host queues may wait for instructions that will never be enqueued.
      runs_.release();
      failure_.rethrow();
    }
  }

  template <typename Body>
  void guard_run(const DeviceRun& run, const Body& body) {
    guard("program '" + run.program->program.name + "' on the device", body);
  }

  void run_plainly(DeviceProgram& loaded, DeviceRun& run) {
    const Program& p = loaded.program;
    if (times_) {
      times_->extend(run.spans, p.instructions.size());
      times_->begin(started_, stream(Queue::compute));
    }
    const auto count = static_cast<std::int32_t>(p.instructions.size());
    for (std::int32_t i = 0; i <= count; ++i) {
      if (i == loaded.inputs_end)
        for (const int q : kDeviceQueues) device_.record(*streams_[q], *run.inputs_read[q]);
      if (i == count) break;
      const Instruction& in = p.instructions[static_cast<std::size_t>(i)];
      if (is_host_queue(in.queue)) continue;
      if (started_ > 0 && in.border_waits != 0) wait_at_border(in);
      enqueue(loaded, i, stream(in.queue), 0, times_ ? &run.spans : nullptr);
      if (const EventPointer& event = loaded.completed_event(started_, i))
        device_.record(stream(in.queue), *event);
      run.enqueued.advance(i);
    }
    // The end of the compute stream is the end of the run.
    for (const int q : kDeviceQueues) {
      device_.record(*streams_[q], *queue_end_[q]);
      device_.record(*streams_[q], *run.ended[q]);
      if (q != kCompute) device_.wait(stream(Queue::compute), *queue_end_[q]);
    }
    device_.record(stream(Queue::compute), *queue_end_[kCompute]);
  }

  /// Enqueues all stretches on the compute stream, one after another; inside a stretch queues run
  /// side by side.
  void run_recorded(DeviceProgram& loaded, DeviceRun& run) {
    kernels::Stream& on = stream(Queue::compute);
    if (loaded.communicator != nullptr) {
      run.collectives_before = loaded.communicator->begun();
      loaded.communicator->count_replayed(loaded.collective_number.back());
    }
    for (const int q : kDeviceQueues)
      if (q != kCompute) device_.wait(on, *queue_end_[q]);
    if (started_ > 0) await_host(started_ - 1);
    if (loaded.has_marks) marks_->begin_run(on, started_);
    if (loaded.inputs_end == 0) record_inputs_read(run);
    for (Stretch& stretch : loaded.stretches) {
      if (stretch.on_host) {
        enqueue(loaded, stretch.first, on, stretch.first, nullptr);
      } else {
        device_.replay(on, *stretch.recording);
      }
      if (stretch.last == loaded.inputs_end) record_inputs_read(run);
    }
    for (const int q : kDeviceQueues) {
      device_.record(on, *queue_end_[q]);
      device_.record(on, *run.ended[q]);
    }
    // The queues of an unrecorded run that follows start after this one.
    for (const int q : kDeviceQueues)
      if (q != kCompute) device_.wait(*streams_[q], *queue_end_[kCompute]);
  }

  void record_inputs_read(DeviceRun& run) {
    for (const int q : kDeviceQueues) device_.record(stream(Queue::compute), *run.inputs_read[q]);
  }

  /// True if `loaded` is to be replayed. All stretches are recorded before the first is replayed,
  /// so that after a failure the whole run is enqueued unrecorded, as are all later ones, on all
  /// ranks, which ask this at the same runs.
  bool has_recordings(DeviceProgram& loaded) {
    if (!records_ || loaded.runs == 0 || loaded.stays_plain) return false;
    if (loaded.is_recorded) return true;
    // A recording runs as a whole, but host queues must know how far the device has come. Parts
    // that the host updates may be empty on some ranks.
    if (!all_agree(loaded.on_host.empty())) {
      loaded.stays_plain = true;
      return false;
    }
    std::string why_not = record(loaded);
    if (!why_not.empty() && records_marks_) {  // perhaps the marks cannot be recorded
      records_marks_ = false;
      const std::string why_no_marks = std::exchange(why_not, record(loaded));
      if (why_not.empty())
        notes_.push_back("nobody sees in which collective a rank is while it replays steps: " +
                         why_no_marks);
    }
    loaded.is_recorded = all_agree(why_not.empty());
    if (loaded.is_recorded) return true;
    records_ = false;
    notes_.push_back(
        "steps are enqueued one launch at a time, which takes longer where they are "
        "short: recording '" +
        loaded.program.name + "' failed: " + (why_not.empty() ? "on another rank" : why_not));
    return false;
  }

  /// Peers agree on each Program, also on one without collectives: Programs are recorded by all
  /// ranks or by none, and after a failure no rank records any more.
  bool all_agree(bool mine) { return peers_ != nullptr ? peers_->all_have_recorded(mine) : mine; }

  /// Records all stretches. Returns why one cannot be recorded, or "".
  std::string record(DeviceProgram& loaded) {
    const std::int64_t before = loaded.communicator != nullptr ? loaded.communicator->begun() : 0;
    std::string why_not;
    loaded.has_marks = records_marks_;
    try {
      for (Stretch& stretch : loaded.stretches)
        if (!stretch.on_host) record(loaded, stretch);
    } catch (const HostError& error) {
      why_not = error.what();
    }
    if (loaded.communicator != nullptr)
      loaded.communicator->count_replayed(before - loaded.communicator->begun());
    return why_not;
  }

  void record(DeviceProgram& loaded, Stretch& stretch) {
    kernels::Stream& origin = stream(Queue::compute);
    is_recording_ = true;
    try {
      device_.begin_recording(origin);
      enqueue_stretch(loaded, stretch);
      stretch.recording = device_.end_recording(origin);
    } catch (...) {
      is_recording_ = false;
      device_.abandon_recording(origin);
      throw;
    }
    is_recording_ = false;
  }

  /// Forks the stretch's queues from the compute stream and joins them again.
  void enqueue_stretch(DeviceProgram& loaded, const Stretch& stretch) {
    kernels::Stream& origin = stream(Queue::compute);
    std::array<bool, kQueues> used{};
    for (std::int32_t i = stretch.first; i < stretch.last; ++i)
      used[static_cast<int>(loaded.program.instructions[static_cast<std::size_t>(i)].queue)] = true;
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
    if (records_marks_) marks_->clear(origin);
  }

  /// Enqueues one instruction on `on`. Waits for instructions before `from` are met already.
  void enqueue(DeviceProgram& loaded, std::int32_t index, kernels::Stream& on, std::int32_t from,
               const DeviceTimes::Spans* times) {
    const auto at = static_cast<std::size_t>(index);
    const Instruction& in = loaded.program.instructions[at];
    const BoundInstruction& bound = loaded.bound[at];
    for (std::int32_t other : in.waits) {
      const Queue queue = loaded.program.instructions[static_cast<std::size_t>(other)].queue;
      if (is_host_queue(queue)) {
        // The device cannot wait for the host, so all that follows in the list waits here, too.
        await_host(started_, queue, other);
      } else if (other >= from) {
        device_.wait(on, *loaded.reached[static_cast<std::size_t>(other)]);
      }
    }
    if (times != nullptr) device_.record(on, *(*times)[at].begin);
    const Range range(device_, in.label.c_str());
    guard("instruction '" + in.label + "'", [&] {
      for (Observer* observer : parts_.observers) observer->begin(loaded.program, index);
      if (is_recording_ && records_marks_) marks_->begin(on, loaded, index);
      if (in.collective)
        bound.communicator->run(on, *in.collective, bound.inputs[0].data, bound.outputs[0].data,
                                bound.workspace);
      else if (is_link_queue(in.queue) && bound.predicate == nullptr)
        device_.copy(on, bound.outputs[0].data, bound.inputs[0].data, in.outputs[0].bytes);
      else  // includes predicated copies over the link, which copy engines do not support
        bound.kernel(
            on, {bound.inputs, bound.outputs, bound.workspace, in.attributes, bound.predicate});
      if (is_recording_ && records_marks_) marks_->end(on, loaded, index);
      for (Observer* observer : parts_.observers) observer->end(loaded.program, index);
    });
    if (times != nullptr) device_.record(on, *(*times)[at].end);
    if (loaded.reached[at]) device_.record(on, *loaded.reached[at]);
  }

  /// Tells that the device has taken up runs up to `last`: all runs before that have ended.
  void tell_begins(RunNumber last) {
    for (; told_ <= last; ++told_) {
      const DeviceRun& run = runs_.of(told_);
      for (Observer* observer : parts_.observers)
        observer->begin_program(run.program->program, run.step);
    }
  }

  /// Waits for run `number` and all runs before it.
  void confirm(RunNumber number) {
    while (confirmed_ <= number) {
      const DeviceRun& run = runs_.of(confirmed_);
      guard_run(run, [&] {
        await(*run.finished);
        await_host(confirmed_);
        look_at_marks();
      });
      if (times_) times_->report(confirmed_, run.program->program, run.spans, parts_.observers);
      if (++confirmed_ < started_) tell_begins(confirmed_);
    }
  }

  ExecutorParts parts_;
  kernels::Device& device_;
  bool records_ = true;        ///< false: recordings are off, one failed, or times are watched
  bool is_recording_ = false;  ///< true: enqueued work is recorded, not run
  bool records_marks_ = false;
  bool has_peers_ = false;
  comm::Communicator* peers_ = nullptr;  ///< whose collectives are recorded; null: none are
  std::array<std::unique_ptr<kernels::Stream>, kQueues> streams_;
  std::array<EventPointer, kQueues> queue_end_;  ///< ends of the last run's queues
  EventPointer joint_;                           ///< forks and joins inside recordings
  std::optional<DeviceTimes> times_;             ///< set if an observer wants times
  std::optional<DeviceMarks> marks_;  ///< set if an observer wants them; outlives loaded_
  std::vector<std::unique_ptr<DeviceProgram>> loaded_;
  std::vector<std::string> notes_;
  std::int64_t started_ = 0;
  std::int64_t confirmed_ = 0;  ///< number of runs known to have completed
  std::int64_t told_ = 0;       ///< number of runs that observers know to have been taken up
  RunFailure failure_{parts_.communicators};
  DeviceRuns runs_{device_, failure_};
  HostQueues host_{parts_, runs_};  ///< last, since its threads use the rest
};

}  // namespace

std::unique_ptr<Executor> make_stream_executor(ExecutorParts parts, kernels::Device& device,
                                               Recordings recordings) {
  return std::make_unique<StreamExecutor>(std::move(parts), device, recordings);
}

}  // namespace strata::runtime
