// Trains in one process, with ranks as threads; most tests of whole steps use it.
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
  /// First rank of each host that run_training plays; empty: all are on one.
  std::vector<int> first_ranks = {};
  /// Makes the device of one rank; empty: the CPU.
  std::function<std::unique_ptr<kernels::Device>()> make_device;
  /// Makes the communicator of a device's collectives; empty: make_device_communicator chooses.
  std::function<std::unique_ptr<comm::Communicator>(comm::Communicator& host, kernels::Device&)>
      connect_device = {};
  runtime::Recordings recordings = runtime::Recordings::on;
  runtime::LockstepReport* lockstep = nullptr;
  runtime::SaveMemory saving = runtime::SaveMemory::none;
  /// Sample s has valid_targets[s % size] valid targets, its first ones. Empty: all are valid.
  std::vector<int> valid_targets;
  std::vector<std::int64_t> shorter_sequences = {};  ///< Plan::shorter_sequences
  std::string weights;  ///< Hugging Face directory; empty: initialized from options.seed
  /// Changes the Plan that the options ask for, which is then compiled without a search. Empty: a
  /// Plan is searched for.
  std::function<void(runtime::Plan&)> change_plan = {};
};

/// Serves as TrainingCase::change_plan: gradients wait on the disk for their updates.
void put_gradients_on_disk(runtime::Plan& plan);

struct TrainingResult {
  std::vector<kernels::StepMetrics> metrics;  ///< rank 0's, of each step
  std::string state;                          ///< describe_state after the last step
  train::MemoryBytes memory;                  ///< rank 0's
  double evaluation = 0;                      ///< held-out loss after the last step
};

/// A small GPT-2 or Llama for tests.
train::ModelConfig tiny_gpt2();
train::ModelConfig tiny_llama();

/// The real GPT-2 124M, for tests that plan and never run.
train::ModelConfig gpt2_124m();

/// Options for `steps` steps of a global batch of `global_batch` sequences of 16 tokens, fp32,
/// AdamW.
train::TrainOptions tiny_options(int world, int global_batch, int steps);

/// Sets fp16 and a loss scale so large that the first of twelve steps overflow and are skipped.
void skip_first_steps(train::TrainOptions& options);

/// Runs all ranks; rethrows the first error. Every lowered Program is verified first. The data are
/// pseudo-random tokens that depend on the sample index alone.
TrainingResult run_training(const TrainingCase& training);

/// Expects equal bits of losses, gradient norms, learning rates, evaluation and state.
void expect_same(const TrainingResult& a, const TrainingResult& b, const std::string& what);

/// Returns the lines of a TrainingResult's state that are not of these kinds.
std::string without(const std::vector<std::string>& kinds, const std::string& state);

/// Throws InternalError with the first problem that the verifier finds in any Program.
void verify_all(const compile::StepPrograms& programs);

/// The device of one rank (none on the CPU), and its disk tier if the Programs use one.
struct RankDevice {
  std::unique_ptr<MemoryDisk> disk;
  std::unique_ptr<kernels::Device> device;
  std::unique_ptr<comm::Communicator> communicator;
};

/// Makes the parts of one rank's engine, with verified Programs. Fills `device`, which must outlive
/// the engine.
train::EngineParts engine_parts(const TrainingCase& training, comm::Communicator& communicator,
                                RankDevice& device);

/// Runs `body` on every rank, each on its own thread, with an engine before its first step.
void on_engines(const TrainingCase& training, const std::function<void(train::Engine&)>& body);

/// Builds one rank's Programs without talking to other ranks.
compile::StepPrograms build_rank(const TrainingCase& training,
                                 const comm::Communicator& communicator);

}  // namespace strata::tests
