// Training on golden batches with the product's engine, and what is left in its storage.
#pragma once

#include <functional>
#include <memory>

#include "tests/golden/golden_values.h"
#include "tests/training/ranks.h"

namespace strata::tests {

/// AdamW as README.md says.
train::OptimizerOptions golden_adamw();

struct GoldenRun {
  std::string model;  ///< directory
  /// Of each step: `rows` x (T + 1) tokens, inputs and next targets.
  std::vector<std::vector<std::int32_t>> batches;
  /// Of each step: `rows` x T targets, < 0 where none counts; empty: those of `batches`.
  std::vector<std::vector<std::int32_t>> targets;
  int steps = 1;          ///< optimizer steps on the first batches
  std::int64_t rows = 2;  ///< divided over ranks and micro-steps
  int world = 1;          ///< more than one: ranks are threads
  int stage = 0;
  int accumulation = 1;
  bool recompute = false;
  DType dtype = DType::f32;  ///< of parameters, activations and gradients
  train::OptimizerOptions optimizer = golden_adamw();
  /// Makes the device of one rank; none: the CPU.
  std::function<std::unique_ptr<kernels::Device>()> make_device;
  std::string save;  ///< folder for a checkpoint afterwards; empty: none
};

struct GoldenResult {
  double evaluation = 0;  ///< of the first batch, before any update
  std::vector<double> losses;
  std::vector<double> gradient_norms;  ///< as the step reports them
  Tensors gradients;                   ///< of the last step, as the optimizer finds them
  Tensors parameters;                  ///< after the last step; the masters of a 16-bit run
};

/// The directory of a run that saves.
std::string saved_checkpoint(const GoldenRun& run);

/// Decay on every parameter, no clipping. Every Program is verified first.
GoldenResult run_golden(const GoldenRun& run);

}  // namespace strata::tests
