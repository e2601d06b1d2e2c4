// One rank's training engine: owns the arena, the executor and the Programs; runs steps.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/step_state.h"
#include "runtime/executor.h"
#include "train/engine/program_set.h"
#include "zero/state_table.h"

namespace strata::train {

/// Where one micro-batch goes: B samples of T tokens, rows in sample order.
struct MicroBatch {
  std::span<std::int32_t> tokens;   ///< [B * T]
  std::span<std::int32_t> targets;  ///< [B * T]; < 0: ignored
  std::span<std::int64_t> samples;  ///< [B] global sample index, keys random numbers
};

/// Fills micro-batch `micro_step` of step `step` for this rank.
using FillBatch = std::function<void(std::int64_t step, int micro_step, const MicroBatch& batch)>;

struct EngineParts {
  ProgramSet programs;
  comm::Communicator* communicator = nullptr;
  std::vector<runtime::Observer*> observers;
  int threads = 1;
  std::int64_t seed = 1;
  double initial_loss_scale = 1;
};

/// Not thread-safe. All calls are collective: every rank makes them in the same order.
class Engine {
 public:
  explicit Engine(EngineParts parts);
  ~Engine();

  /// One optimizer step over all its micro-steps. Throws the first error of an instruction.
  kernels::StepMetrics train_step(std::int64_t step, const FillBatch& fill);

  /// Mean loss per valid target over `batches` micro-batches per rank and all ranks; NaN when one
  /// of their losses is not finite.
  double evaluate(std::int64_t batches, const FillBatch& fill);

  /// Logits [padded vocabulary] after the last of `tokens` (at most the Program's sequence), fp32.
  std::vector<float> logits(const std::vector<std::int32_t>& tokens);

  /// Flags that enter the next step's agreed word (design 2.17), one counter each.
  void raise_flag(int flag) { pending_flags_ |= 1u << flag; }

  [[nodiscard]] const ProgramSet& programs() const { return programs_; }
  [[nodiscard]] comm::Communicator& communicator() { return *communicator_; }
  [[nodiscard]] kernels::CpuDevice& device() { return device_; }
  [[nodiscard]] const runtime::Arena& arena() const { return arena_; }
  /// Bytes of persistent storage by name, valid between steps.
  [[nodiscard]] std::span<std::byte> storage(const std::string& name) const;
  [[nodiscard]] std::span<std::byte> storage(const zero::StateEntry& entry) const;
  /// Every rank arrives before any leaves. Between steps only.
  void barrier();
  /// values[i] becomes the sum over ranks (wrapping). Between steps only.
  void sum_over_ranks(std::span<std::int64_t> values);

 private:
  /// Returns the number of valid targets.
  std::int64_t write_inputs(std::int64_t step, int micro_step, const FillBatch& fill);
  void write_word(std::uint32_t flags);
  template <typename T>
  [[nodiscard]] std::span<T> typed(const std::string& name) const;

  ProgramSet programs_;
  comm::Communicator* communicator_;
  kernels::CpuDevice device_;
  kernels::CpuDevice communication_device_;  ///< one thread: sums run on the queue's own thread
  kernels::CpuStream compute_stream_;
  kernels::CpuStream communication_stream_;
  runtime::Arena arena_;
  runtime::Arena exchange_;  ///< window of collectives between steps
  std::unique_ptr<runtime::Executor> executor_;
  std::map<zero::Position, int> train_handles_;
  int evaluate_handle_ = -1, generate_handle_ = -1;
  std::int64_t seed_;
  std::uint32_t pending_flags_ = 0;
};

}  // namespace strata::train
