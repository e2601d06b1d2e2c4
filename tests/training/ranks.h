// Training in one process: ranks are threads on the thread communicator. Most tests of whole steps
// use it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/training/memory_disk.h"
#include "train/engine/engine.h"
#include "train/engine/memory_report.h"

namespace strata::tests {

struct TrainingCase {
  train::ModelConfig model;
  train::TrainOptions options;
  int world = 1;
  int threads = 1;
  /// Makes the device of one rank; none: the CPU.
  std::function<std::unique_ptr<kernels::Device>()> make_device;
  runtime::Recordings recordings = runtime::Recordings::on;
  runtime::LockstepReport* lockstep = nullptr;
  runtime::SaveMemory saving = runtime::SaveMemory::none;
  /// How many targets of sample s count, its first ones: number s modulo their count. Empty: all.
  std::vector<int> valid_targets;
  std::vector<std::int64_t> shorter_sequences = {};  ///< Plan::shorter_sequences
  std::string weights;  ///< Hugging Face directory; empty: initialized from options.seed
  /// Changes the Plan that the options ask for, which is then compiled as it is; nothing: a Plan is
  /// searched for.
  std::function<void(runtime::Plan&)> change_plan = {};
};

/// As TrainingCase::change_plan: gradients wait on the disk for their updates.
void put_gradients_on_disk(runtime::Plan& plan);

struct TrainingResult {
  std::vector<kernels::StepMetrics> metrics;  ///< of each step, rank 0's
  std::string state;                          ///< describe_state after the last step
  train::MemoryBytes memory;                  ///< of rank 0
  double evaluation = 0;                      ///< held-out loss after the last step
};

/// A small GPT-2 or Llama for tests.
train::ModelConfig tiny_gpt2();
train::ModelConfig tiny_llama();

/// Of real size, for what is planned and never run.
train::ModelConfig gpt2_124m();

/// Options for `steps` steps of a global batch of `global_batch` sequences of 16 tokens, fp32,
/// AdamW.
train::TrainOptions tiny_options(int world, int global_batch, int steps);

/// fp16 with a loss scale so large that the first of twelve steps overflow and are skipped.
void skip_first_steps(train::TrainOptions& options);

/// Runs all ranks; rethrows the first error. Every lowered Program is verified first. The data are
/// pseudo-random tokens that depend on the sample index alone.
TrainingResult run_training(const TrainingCase& training);

/// Expects losses, gradient norms, learning rates, evaluation and state of equal bits.
void expect_same(const TrainingResult& a, const TrainingResult& b, const std::string& what);

/// Of a state as in TrainingResult, lines but for those of these kinds.
std::string without(const std::vector<std::string>& kinds, const std::string& state);

/// Throws InternalError with the first problem that the verifier finds in any Program.
void verify_all(const compile::StepPrograms& programs);

/// The device of one rank, none on the CPU, and its disk tier where the Programs use one.
struct RankDevice {
  std::unique_ptr<MemoryDisk> disk;
  std::unique_ptr<kernels::Device> device;
  std::unique_ptr<comm::Communicator> communicator;
};

/// What the engine of one rank is made of, its Programs verified. Makes `device` where the case has
/// one; it must outlive the engine.
train::EngineParts engine_parts(const TrainingCase& training, comm::Communicator& communicator,
                                RankDevice& device);

/// Runs `body` on every rank, a thread each, with an engine before its first step.
void on_engines(const TrainingCase& training, const std::function<void(train::Engine&)>& body);

/// Programs of one rank, built without communication partners.
compile::StepPrograms build_rank(const TrainingCase& training,
                                 const comm::Communicator& communicator);

}  // namespace strata::tests
