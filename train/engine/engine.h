// One rank's training engine: owns the arena, the executor and the Programs; runs steps.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "kernels/ops/step_state.h"
#include "runtime/execute/executor.h"
#include "step/state_table.h"
#include "train/engine/build_programs.h"
#include "train/engine/engine_memory.h"
#include "train/engine/execution_site.h"

namespace strata::train {

/// What a rank may say in the step's agreed word (design 2.17). A flag that any rank raises in step
/// t is in the metrics of step t on every rank, so all act on it at the same place.
enum class Flag : std::uint8_t {
  stop,
  saving,    ///< this rank has not done its part of the checkpoint that is being written
  save_due,  ///< rank 0: by the clock
};

/// Whether a step keeps the state that it began with: for a checkpoint (step/snapshot.h).
enum class Snapshot : std::uint8_t { none, take };

constexpr bool is_raised(const kernels::StepMetrics& metrics, Flag flag) {
  return (metrics.flags >> static_cast<int>(flag) & 1) != 0;
}

/// Where one micro-batch goes: B samples of T tokens, rows in sample order. T is the Plan's
/// shape.sequence, or what the step was started with.
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
  /// Where they run. Rank and world are those that they were built for.
  std::unique_ptr<ExecutionSite> site;
  /// The disk tier, of compile::StepPrograms::disk_bytes; null where Programs need none.
  runtime::Disk* disk = nullptr;
  std::vector<runtime::Observer*> observers;
  std::optional<std::int64_t> seed;          ///< none: StepPrograms::seed
  std::optional<double> initial_loss_scale;  ///< none: StepPrograms::initial_loss_scale
};

/// Not thread-safe. All calls are collective: every rank makes them in the same order. What is
/// valid "between steps" needs all started steps drained. A call at a wrong time or with what the
/// Programs cannot take throws InvalidArgument; after an error in the middle of a step, the
/// caller's own in `fill` included, an engine can be destroyed and no more.
class Engine {
 public:
  /// Throws InvalidArgument where parts and Programs do not belong together, OutOfMemory.
  explicit Engine(EngineParts parts);
  /// Ends the process when somebody still borrows the engine (lend()).
  ~Engine();

  /// Enqueues the micro-steps and the update of step `step`, and returns the metrics of the step
  /// before it, if one was under way: the device never waits for the host. Calls `fill` for all
  /// micro-batches before it enqueues the first, since the loss is the mean over the step's valid
  /// targets. Throws InvalidArgument for a token or target past the vocabulary, and the first error
  /// of an instruction of either step. A snapshot is of the state after the step before; nobody may
  /// still read an earlier one.
  ///
  /// `sequence`: tokens of the step's longest sample on any rank, 0: the Plan's shape.sequence.
  /// `fill` gives samples of so many, and the Programs of the smallest of the Plan's sequences that
  /// holds them run. So they depend on the step alone, and its bits not on which rank has which
  /// sample. Where ranks do not run the same Programs, reading the step's metrics throws
  /// InvalidArgument; where they replay recordings (NCCL) they may wait for one another instead.
  std::optional<kernels::StepMetrics> start_step(std::int64_t step, const FillBatch& fill,
                                                 Snapshot snapshot = Snapshot::none,
                                                 std::int64_t sequence = 0);
  /// Waits for all that was started, without the updates that a drain runs: ranks may talk, scalars
  /// are those of the last step, a snapshot that was taken is whole. The next step goes on as if
  /// nothing had been.
  void settle();
  /// Runs pending updates, waits for all, returns the last step's metrics unless nothing was under
  /// way.
  std::optional<kernels::StepMetrics> drain();
  /// One whole step, drained. `sequence`: as start_step() has it.
  kernels::StepMetrics train_step(std::int64_t step, const FillBatch& fill,
                                  std::int64_t sequence = 0);

  /// Between steps. Switches to Programs of another Plan: other actions, schedules or shapes of a
  /// micro-batch, over the same state in the same places. Throws InvalidArgument, and changes
  /// nothing, where the state lies elsewhere, saving differs or is under way, or an arena is too
  /// small: make the engine with those that need most.
  void adopt(compile::StepPrograms programs);

  /// Between steps. Mean loss per valid target over `batches` micro-batches per rank and all ranks;
  /// NaN when one of their losses is not finite. `sequence`: as start_step() has it, of all of
  /// them.
  double evaluate(std::int64_t batches, const FillBatch& fill, std::int64_t sequence = 0);

  /// Logits [padded vocabulary] after the last of `tokens` (at most the Program's sequence), fp32.
  std::vector<float> logits(const std::vector<std::int32_t>& tokens);

  /// What people should know by now: slower ways that had to be taken.
  [[nodiscard]] std::vector<std::string> notes() const { return executor_->notes(); }
  /// Between steps, before the device's communicator closes.
  void forget_recordings() { executor_->forget_recordings(); }

  /// Everything that was started has completed, updates included.
  [[nodiscard]] bool is_drained() const {
    return settled_ && !in_step_ && !under_way_ && !updates_pending_;
  }
  /// Throws InvalidArgument, naming `call`, unless it is drained.
  void require_drained(const char* call) const;
  /// Says whether a step has taken a snapshot that nobody released.
  [[nodiscard]] bool has_snapshot() const { return has_snapshot_; }
  /// A token to hold while using the engine: see ~Engine().
  [[nodiscard]] std::shared_ptr<const void> lend() const { return lent_; }

  /// Enters the agreed word of the next step that is started.
  void raise(Flag flag) { pending_flags_ |= 1u << static_cast<int>(flag); }

  [[nodiscard]] const compile::StepPrograms& programs() const { return programs_; }
  [[nodiscard]] comm::Communicator& communicator() { return site_->host_communicator(); }
  /// The host's threads, whatever runs the Programs.
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
    return memory_.read(entry, first, count, buffer);
  }
  /// Sets who gets the windows of the next snapshot while its step runs, until release_snapshot().
  /// Settled.
  void set_snapshot_receiver(SnapshotReceiver receiver) {
    memory_.set_snapshot_receiver(std::move(receiver));
  }
  /// Completes the snapshot: call after the step that took it and before it is read, any number
  /// of times.
  void complete_snapshot();
  /// Nobody reads or takes the last snapshot any more. Any time.
  void release_snapshot();
  /// Reads as read() does, but from the last snapshot, what has no windows. Any thread.
  [[nodiscard]] std::span<const std::byte> read_snapshot(const step::StateEntry& entry,
                                                         std::int64_t first, std::int64_t count,
                                                         std::vector<std::byte>& buffer) const {
    return memory_.read_snapshot(entry, first, count, buffer);
  }
  /// All bytes of storage by name, as above.
  [[nodiscard]] std::span<const std::byte> read(const std::string& name,
                                                std::vector<std::byte>& buffer) const {
    return memory_.read(name, buffer);
  }
  /// What Programs have moved to and from the disk tier, and what reading state there has.
  [[nodiscard]] runtime::DiskCounters disk_counters() const {
    return memory_.disk() != nullptr ? memory_.disk()->counters() : runtime::DiskCounters{};
  }
  /// `bytes` become the elements from `first` on, between steps. Any thread.
  void write(const step::StateEntry& entry, std::int64_t first,
             std::span<const std::byte> bytes) const {
    memory_.write(entry, first, bytes);
  }
  /// Every rank arrives before any leaves. Settled.
  void barrier();
  /// values[i] becomes the sum over ranks (wrapping). Settled.
  void sum_over_ranks(std::span<std::int64_t> values);

 private:
  /// The host's side of an input: its pinned twin.
  template <typename T>
  [[nodiscard]] std::span<T> input(const std::string& name) const;
  /// What `fill` gives for one micro-batch, until it is a Program's input.
  struct FilledBatch {
    std::vector<std::int32_t> tokens, targets;
    std::vector<std::int64_t> samples;
  };
  /// Tokens of each sample that `fill` gives, and of those of the Programs that take them.
  struct SampleLength {
    std::int64_t given = 0, taken = 0;
    std::int64_t shorter = 0;  ///< ProgramKey::shorter_sequence
  };
  /// Throws InvalidArgument where no Program holds samples of so many tokens.
  [[nodiscard]] SampleLength sample_length(std::int64_t sequence) const;
  /// Fills batches_[micro_step]; returns its number of valid targets.
  std::int64_t fill_batch(std::int64_t step, int micro_step, const FillBatch& fill,
                          const SampleLength& length);
  /// Waits until the run before has read its inputs. `place`: which of the Program's micro-steps.
  void write_inputs(std::int64_t step, const FilledBatch& batch, const SampleLength& length,
                    int place = 0);
  /// Steps that the drained state has seen.
  [[nodiscard]] std::int64_t steps_in_state() const;
  [[nodiscard]] kernels::StepMetrics read_metrics(std::int64_t ordinal) const;
  void start(int handle, std::int64_t step) {
    settled_ = false;
    last_run_ = executor_->start(handle, step);
  }
  /// Throws unless the Programs are safe to run, within their Plan, and, which is collective, in
  /// step with those of the other ranks.
  void check_programs(const compile::StepPrograms& programs) const;
  /// Those of programs_, into a new executor.
  void load_programs();
  /// The only Program of a kind but train.
  [[nodiscard]] std::optional<int> handle(compile::ProgramKind kind) const;
  [[nodiscard]] int train_handle(zero::MicroStepKind micro_step, Snapshot snapshot,
                                 std::int64_t shorter) const;
  /// The rank's flags, and what tells ranks whether all run Programs of one length.
  void write_word(std::uint32_t flags, std::int64_t shorter);
  template <typename T>
  [[nodiscard]] std::span<T> typed(const std::string& name) const;

  compile::StepPrograms programs_;
  std::vector<zero::MicroStep> micro_steps_;
  std::vector<FilledBatch> batches_;  ///< of a step, by zero::MicroStep::batch
  std::unique_ptr<ExecutionSite> site_;
  EngineMemory memory_;
  runtime::Arena exchange_;  ///< window of collectives between steps
  runtime::ExecutorParts executor_parts_;
  std::int64_t disk_bytes_;  ///< of the disk's arena
  std::unique_ptr<runtime::Executor> executor_;
  std::vector<std::unique_ptr<runtime::Executor>> retired_;
  std::map<compile::ProgramKey, int> handles_;  ///< of the executor
  bool settled_ = true;                         ///< nothing runs
  bool has_snapshot_ = false;
  /// The updates that a snapshot is to hold were in the step that was started last.
  bool hold_is_due_ = false;
  bool in_step_ = false;          ///< a step is started in part
  bool updates_pending_ = false;  ///< the last step's, which the next one or a drain runs
  bool is_read_ahead_ = false;    ///< the last Program left records for the updates
  std::int64_t seed_;
  std::uint32_t pending_flags_ = 0;
  runtime::RunNumber last_run_ = -1;
  /// A step whose metrics were not read yet.
  struct StepUnderWay {
    runtime::RunNumber run;
    std::int64_t ordinal;  ///< steps before it, skipped ones included
  };
  std::optional<StepUnderWay> under_way_;
  std::int64_t steps_started_ = 0;
  std::int64_t last_step_ = -1;
  std::shared_ptr<const int> lent_ = std::make_shared<int>();
};

}  // namespace strata::train
