// One rank's training engine: owns the arena, the executor and the Programs; runs steps.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "core/beat.h"
#include "kernels/ops/step_state.h"
#include "runtime/execute/executor.h"
#include "runtime/program/rehearsal.h"
#include "step/state_table.h"
#include "train/engine/build_programs.h"
#include "train/engine/engine_memory.h"
#include "train/engine/execution_site.h"

namespace strata::train {

/// Flags that a rank can raise in the step's agreed word (design 2.17). One that any rank raises in
/// step t is in the metrics of step t on every rank, so all ranks act on it after the same step.
enum class Flag : std::uint8_t {
  stop,
  saving,    ///< this rank has not done its part of the checkpoint that is being written
  save_due,  ///< raised by rank 0 when its clock says that a checkpoint is due
  /// Raised by the engine alone: ranks run Programs of different lengths.
  lengths_differ = kernels::AgreedWord::kFlags - 1,
};

/// Says whether a step keeps the state that it began with for a checkpoint (step/snapshot.h).
enum class Snapshot : std::uint8_t { none, take };

constexpr bool is_raised(const kernels::StepMetrics& metrics, Flag flag) {
  return (metrics.flags >> static_cast<int>(flag) & 1) != 0;
}

/// The memory to which FillBatch writes a micro-batch: B samples of T tokens, rows in sample order.
/// T is the Plan's shape.sequence, or the `sequence` that the step was started with.
struct MicroBatch {
  std::span<std::int32_t> tokens;   ///< [B * T]
  std::span<std::int32_t> targets;  ///< [B * T]; < 0: ignored
  std::span<std::int64_t> samples;  ///< [B] global sample index, keys random numbers
};

/// Fills micro-batch `micro_step` of step `step` for this rank (zero::MicroStep::batch).
using FillBatch = std::function<void(std::int64_t step, int micro_step, const MicroBatch& batch)>;

/// Plain pointers are borrowed: what they point to outlives the engine.
struct EngineParts {
  compile::StepPrograms programs;
  /// The place where the Programs run, with the rank and world that they were built for.
  std::unique_ptr<ExecutionSite> site;
  /// The disk tier, of compile::StepPrograms::disk_bytes; null if the Programs need none.
  runtime::Disk* disk = nullptr;
  std::vector<runtime::Observer*> observers;
  std::optional<std::int64_t> seed;          ///< none: StepPrograms::seed
  std::optional<double> initial_loss_scale;  ///< none: StepPrograms::initial_loss_scale
  Beat beat = {};  ///< told of each piece of state that is read or written between steps
};

/// One rank's engine; not thread-safe. All calls are collective: every rank makes them in the same
/// order. Calls "between steps" require that all started steps are drained. A call at a wrong time,
/// or with arguments that the Programs cannot take, throws InvalidArgument. After an error in the
/// middle of a step, even one that `fill` threw, the engine can only be destroyed.
class Engine {
 public:
  /// Throws InvalidArgument if parts and Programs do not belong together, and OutOfMemory.
  explicit Engine(EngineParts parts);
  /// Ends the process if somebody still holds a token of lend().
  ~Engine();

  /// Enqueues the micro-steps and the update of step `step`, and returns the metrics of the step
  /// before it, if one was under way: the device never waits for the host. Calls `fill` for all
  /// micro-batches before it enqueues the first, since the loss is the mean over the step's valid
  /// targets. Throws InvalidArgument for a token or target outside the vocabulary, and the first
  /// error of an instruction of either step. A snapshot holds the state after the step before;
  /// nobody may still read an earlier snapshot.
  ///
  /// `sequence`: tokens of the step's longest sample on any rank; 0: the Plan's shape.sequence.
  /// `fill` gives samples of this length, and the Programs of the smallest of the Plan's sequences
  /// that holds it run. The choice of Programs is the same on all ranks, so the step's bits do not
  /// depend on which rank has which sample. If ranks run different Programs, reading the step's
  /// metrics throws InvalidArgument; where they replay recordings (NCCL) they may wait for one
  /// another instead.
  std::optional<kernels::StepMetrics> start_step(std::int64_t step, const FillBatch& fill,
                                                 Snapshot snapshot = Snapshot::none,
                                                 std::int64_t sequence = 0);
  /// Waits for all started work, but does not start the updates that a drain runs. After it ranks
  /// may communicate, scalars are those of the last step, and a snapshot is complete. The next step
  /// goes on as if nothing had happened.
  void settle();
  /// Runs pending updates and waits for all started work. Returns the last step's metrics, or
  /// nullopt if no step was under way.
  std::optional<kernels::StepMetrics> drain();
  /// Returns when the step ended whose metrics were returned last; after drain(), when the pending
  /// updates had ended, too.
  [[nodiscard]] std::chrono::steady_clock::time_point step_end() const { return step_end_; }
  /// Runs one whole step and drains it. `sequence`: as in start_step().
  kernels::StepMetrics train_step(std::int64_t step, const FillBatch& fill,
                                  std::int64_t sequence = 0);

  /// Switches to the Programs of another Plan, between steps: other actions, schedules, shapes
  /// or numbers of micro-batches, over the same state in the same places. Throws InvalidArgument,
  /// and changes nothing, if the state lies elsewhere, the kind of saving differs, a save is under
  /// way, or an arena is too small. So construct the engine with the Programs that need most
  /// memory.
  void adopt(compile::StepPrograms programs);

  /// Returns, between steps, the mean loss per valid target over `batches` micro-batches of each
  /// rank, or NaN if any loss is not finite. `sequence`: as in start_step(), of all these batches.
  double evaluate(std::int64_t batches, const FillBatch& fill, std::int64_t sequence = 0);

  /// Returns the fp32 logits [padded vocabulary] after the last token; `tokens` fit the sequence.
  std::vector<float> logits(const std::vector<std::int32_t>& tokens);

  /// Runs instructions of the engine's own Programs for `observer`, before weights are loaded, and
  /// zeroes the storage that they have written.
  void rehearse(const runtime::Rehearsal& rehearsal, runtime::Observer& observer);

  /// Messages for people: slower ways that the executor had to take.
  [[nodiscard]] std::vector<std::string> notes() const { return executor_->notes(); }
  /// Frees recordings of the device. Between steps, before the device's communicator closes.
  void forget_recordings() { executor_->forget_recordings(); }

  /// True if everything that was started has completed, updates included.
  [[nodiscard]] bool is_drained() const {
    return settled_ && !in_step_ && !under_way_ && !updates_pending_;
  }
  /// Throws InvalidArgument, naming `call`, unless the engine is drained.
  void require_drained(const char* call) const;
  /// True if a step has taken a snapshot that nobody has released.
  [[nodiscard]] bool has_snapshot() const { return has_snapshot_; }
  /// A token to hold while using the engine; see ~Engine().
  [[nodiscard]] std::shared_ptr<const void> lend() const { return lent_; }

  /// Raises a flag in the agreed word of the next step that is started.
  void raise(Flag flag) { pending_flags_ |= 1u << static_cast<int>(flag); }

  [[nodiscard]] const compile::StepPrograms& programs() const { return programs_; }
  [[nodiscard]] comm::Communicator& communicator() { return site_->host_communicator(); }
  /// For long work on this engine's behalf.
  [[nodiscard]] const Beat& beat() const { return beat_; }
  /// The host's threads, whether Programs run on the CPU or on a device.
  [[nodiscard]] kernels::ThreadPool& pool() { return site_->pool(); }
  [[nodiscard]] const runtime::Arena& arena(runtime::Tier tier = runtime::Tier::device) const {
    return memory_.arena(tier);
  }
  /// Bytes of persistent storage in memory that the host may touch, valid between steps.
  [[nodiscard]] std::span<std::byte> storage(const std::string& name) const {
    return memory_.storage(name);
  }
  [[nodiscard]] std::span<std::byte> storage(const step::StateEntry& entry) const {
    return memory_.storage(entry);
  }
  /// Elements [first, first + count) of an entry, wherever it lies, between steps: the storage
  /// itself where the host may touch it, else a copy in `buffer`.
  [[nodiscard]] std::span<const std::byte> read(const step::StateEntry& entry, std::int64_t first,
                                                std::int64_t count,
                                                std::vector<std::byte>& buffer) const {
    beat_();
    return memory_.read(entry, first, count, buffer);
  }
  /// Sets the function that is given the windows of the next snapshot while its step runs, until
  /// release_snapshot(). The engine must be settled.
  void set_snapshot_receiver(SnapshotReceiver receiver) {
    memory_.set_snapshot_receiver(std::move(receiver));
  }
  /// Completes the snapshot. Call it, once or more, after the step that took it and before reading.
  void complete_snapshot();
  /// Says that nobody reads or receives the last snapshot any more. Any time.
  void release_snapshot();
  /// Reads as read() does, but from the last snapshot; not what goes through windows. Any thread.
  [[nodiscard]] std::span<const std::byte> read_snapshot(const step::StateEntry& entry,
                                                         std::int64_t first, std::int64_t count,
                                                         std::vector<std::byte>& buffer) const {
    return memory_.read_snapshot(entry, first, count, buffer);
  }
  /// All bytes of the storage of this name; otherwise like read() of an entry.
  [[nodiscard]] std::span<const std::byte> read(const std::string& name,
                                                std::vector<std::byte>& buffer) const {
    return memory_.read(name, buffer);
  }
  /// The bytes that Programs and reads of state have moved to and from the disk tier.
  [[nodiscard]] runtime::DiskCounters disk_counters() const {
    return memory_.disk() != nullptr ? memory_.disk()->counters() : runtime::DiskCounters{};
  }
  /// Overwrites the elements from `first` on with `bytes`, between steps. Any thread.
  void write(const step::StateEntry& entry, std::int64_t first,
             std::span<const std::byte> bytes) const {
    beat_();
    memory_.write(entry, first, bytes);
  }
  /// Returns when every rank has called it. The engine must be settled.
  void barrier();
  /// Replaces values[i] by its sum over ranks (wrapping). The engine must be settled.
  void sum_over_ranks(std::span<std::int64_t> values);

 private:
  /// The host's side of an input: its pinned twin.
  template <typename T>
  [[nodiscard]] std::span<T> input(const std::string& name) const;
  /// One micro-batch as `fill` gave it, before it is copied to a Program's input.
  struct FilledBatch {
    std::vector<std::int32_t> tokens, targets;
    std::vector<std::int64_t> samples;
  };
  /// Tokens per sample, as `fill` gives them and as the Programs that run take them.
  struct SampleLength {
    std::int64_t given = 0, taken = 0;
    std::int64_t shorter = 0;  ///< ProgramKey::shorter_sequence
  };
  /// Throws InvalidArgument if no Program holds samples of this length.
  [[nodiscard]] SampleLength sample_length(std::int64_t sequence) const;
  /// Fills batches_[micro_step]; returns its number of valid targets.
  std::int64_t fill_batch(std::int64_t step, int micro_step, const FillBatch& fill,
                          const SampleLength& length);
  /// Copies a batch to the inputs at micro-step `place`, once the run before has read its own.
  void write_inputs(std::int64_t step, const FilledBatch& batch, const SampleLength& length,
                    int place = 0);
  /// The number of steps that the drained state has seen.
  [[nodiscard]] std::int64_t steps_in_state() const;
  [[nodiscard]] kernels::StepMetrics read_metrics(std::int64_t ordinal) const;
  void start(int handle, std::int64_t step) {
    settled_ = false;
    last_run_ = executor_->start(handle, step);
  }
  /// Throws unless the Programs are safe to run, stay within their Plan and, which is collective,
  /// have the same sequence of collectives as those of the other ranks.
  void check_programs(const compile::StepPrograms& programs) const;
  /// Loads the Programs of programs_ into a new executor, and counts their micro-steps.
  void load_programs();
  /// The first Program of a kind other than train; nullopt if there is none.
  [[nodiscard]] std::optional<int> handle(compile::ProgramKind kind) const;
  [[nodiscard]] int train_handle(zero::MicroStepKind micro_step, Snapshot snapshot,
                                 std::int64_t shorter) const;
  /// Writes the rank's flags, and a number that shows whether all ranks run Programs of one length.
  void write_word(std::uint32_t flags, std::int64_t shorter);
  template <typename T>
  [[nodiscard]] std::span<T> typed(const std::string& name) const;

  compile::StepPrograms programs_;
  std::vector<zero::MicroStep> micro_steps_;
  std::vector<FilledBatch> batches_;  ///< batches of a step, indexed by zero::MicroStep::batch
  std::unique_ptr<ExecutionSite> site_;
  EngineMemory memory_;
  runtime::Arena exchange_;  ///< operands of collectives between steps
  runtime::ExecutorParts executor_parts_;
  std::int64_t disk_bytes_;  ///< size of the disk tier's arena
  std::unique_ptr<runtime::Executor> executor_;
  std::vector<std::unique_ptr<runtime::Executor>> retired_;
  std::map<compile::ProgramKey, int> handles_;  ///< handles in executor_
  bool settled_ = true;                         ///< nothing is running
  bool has_snapshot_ = false;
  /// True if the last started step holds the updates that a snapshot waits for.
  bool hold_is_due_ = false;
  bool in_step_ = false;          ///< the step has begun, but not all of it is enqueued
  bool updates_pending_ = false;  ///< the last step's updates, which the next one or a drain runs
  bool is_read_ahead_ = false;    ///< the last Program left records for the updates
  std::int64_t seed_;
  Beat beat_;
  std::uint32_t pending_flags_ = 0;
  runtime::RunNumber last_run_ = -1;
  /// A step whose metrics have not been read yet.
  struct StepUnderWay {
    runtime::RunNumber run;
    std::int64_t ordinal;  ///< number of steps before it, skipped ones included
  };
  std::optional<StepUnderWay> under_way_;
  std::chrono::steady_clock::time_point step_end_;
  std::int64_t steps_started_ = 0;
  std::int64_t last_step_ = -1;
  std::shared_ptr<const int> lent_ = std::make_shared<int>();
};

}  // namespace strata::train
