// Trains on golden batches with the product's engine and reads the results from its storage.
#pragma once

#include <functional>
#include <memory>

#include "tests/golden/golden_values.h"
#include "tests/training/ranks.h"

namespace strata::tests {

/// The AdamW settings of README.md.
train::OptimizerOptions golden_adamw();

struct GoldenRun {
  std::string model;  ///< its directory
  /// Tokens per step, `rows` x (T + 1): inputs and next targets.
  std::vector<std::vector<std::int32_t>> batches;
  /// Targets per step, `rows` x T, < 0 where not valid; empty: the next tokens of `batches`.
  std::vector<std::vector<std::int32_t>> targets;
  int steps = 1;          ///< optimizer steps on the first batches
  std::int64_t rows = 2;  ///< divided over ranks and micro-steps
  int world = 1;          ///< more than one: ranks are threads
  int stage = 0;
  int accumulation = 1;
  bool recompute = false;
  DType dtype = DType::f32;  ///< type of parameters, activations and gradients
  train::OptimizerOptions optimizer = golden_adamw();
  /// Makes the device of one rank; empty: the CPU.
  std::function<std::unique_ptr<kernels::Device>()> make_device;
  std::string save;  ///< folder for a checkpoint at the end; empty: none
};

struct GoldenResult {
  double evaluation = 0;  ///< held-out loss of the first batch, before any update
  std::vector<double> losses;
  std::vector<double> gradient_norms;  ///< as reported by the steps
  Tensors gradients;                   ///< gradients of the last step, as the optimizer reads them
  Tensors parameters;                  ///< after the last step; the masters of a 16-bit run
};

/// Returns the checkpoint's directory of a run that saves.
std::string saved_checkpoint(const GoldenRun& run);

/// Runs with decay on every parameter and no clipping. Every Program is verified first.
GoldenResult run_golden(const GoldenRun& run);

}  // namespace strata::tests
