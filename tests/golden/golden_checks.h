// Golden batches, and the checks of a run on them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <vector>

#include "tests/golden/golden_run.h"
#include "tests/golden/golden_values.h"

namespace strata::tests {

/// Prints a case's name for GoogleTest.
void PrintTo(const GoldenCase& golden, std::ostream* out);

/// Bound of |a - b| / |b| for logits, loss, gradients and the results of ten steps.
inline constexpr double kGoldenTolerance = 1e-5;
/// The same bound after kGoldenSteps updates.
inline constexpr double kTrainedTolerance = 1e-4;
inline constexpr int kGoldenSteps = 30;

/// Joins [rows, T] inputs and targets of golden.safetensors into one batch of [rows, T + 1] tokens.
std::vector<std::int32_t> one_batch(const train::ModelFiles& values);

/// Splits an int32 tensor [steps, ...] by steps.
std::vector<std::vector<std::int32_t>> rows_of_steps(const train::ModelFiles& values,
                                                     const std::string& tensor);

/// Returns the batches of the AdamW run, [rows, T + 1] tokens per step.
std::vector<std::vector<std::int32_t>> training_batches(const train::ModelFiles& values);

/// A run on masked.safetensors (README.md). Its four rows have different numbers of valid targets,
/// down to none, so that ranks and micro-steps of one row each differ, too. SGD shows the divisor
/// of the gradients.
struct MaskedRun {
  GoldenRun run;
  std::vector<double> losses;
  Tensors parameters;
};
MaskedRun masked_run();

/// Drops the key's bias of GPT-2, the middle third of c_attn.bias, whose true gradient is zero
/// (README.md).
Tensors without_key_bias(Tensors tensors);

/// Computes the global L2 norm.
double norm_of(const Tensors& tensors);

/// Fails with the tensor that differs most.
testing::AssertionResult agree(const Tensors& ours, const Tensors& golden, double tolerance);

/// Fails with the first tensor that differs in a bit.
testing::AssertionResult same_bytes(const Tensors& a, const Tensors& b);

/// Expects the results of training to agree with those of PyTorch.
void expect_trained(const GoldenResult& result, const std::vector<double>& losses,
                    const Tensors& parameters, double tolerance);

}  // namespace strata::tests
