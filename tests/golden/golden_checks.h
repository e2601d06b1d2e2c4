// What tests ask of a run on golden batches, and the batches.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <vector>

#include "tests/golden/golden_run.h"
#include "tests/golden/golden_values.h"

namespace strata::tests {

/// How GoogleTest names a case.
void PrintTo(const GoldenCase& golden, std::ostream* out);

/// |a - b| / |b| of logits, loss, gradients and what ten steps give.
inline constexpr double kGoldenTolerance = 1e-5;
/// After kGoldenSteps updates.
inline constexpr double kTrainedTolerance = 1e-4;
inline constexpr int kGoldenSteps = 30;

/// [rows, T] inputs and targets of golden.safetensors as one batch of [rows, T + 1] tokens.
std::vector<std::int32_t> one_batch(const train::ModelFiles& values);

/// An int32 tensor [steps, ...], step by step.
std::vector<std::vector<std::int32_t>> rows_of_steps(const train::ModelFiles& values,
                                                     const std::string& tensor);

/// One batch of [rows, T + 1] tokens per step of AdamW.
std::vector<std::vector<std::int32_t>> training_batches(const train::ModelFiles& values);

/// Training on the values of masked.safetensors (README.md), on one rank: one row for each of four
/// micro-batches, so that counts of targets differ between ranks and between micro-steps, down to
/// none. SGD shows by what gradients were divided.
struct MaskedRun {
  GoldenRun run;
  std::vector<double> losses;
  Tensors parameters;
};
MaskedRun masked_run();

/// Without the key's bias of GPT-2, the middle third of c_attn.bias: it has a true gradient of zero
/// (README.md).
Tensors without_key_bias(Tensors tensors);

/// Global L2 norm.
double norm_of(const Tensors& tensors);

/// Fails with the tensor that differs most.
testing::AssertionResult agree(const Tensors& ours, const Tensors& golden, double tolerance);

/// Fails with the first tensor that differs in a bit.
testing::AssertionResult same_bytes(const Tensors& a, const Tensors& b);

/// What training gave against what PyTorch's gave, as GoogleTest expectations.
void expect_trained(const GoldenResult& result, const std::vector<double>& losses,
                    const Tensors& parameters, double tolerance);

}  // namespace strata::tests
