// The checks of every operation of a layer, whatever the backend: results against a reference,
// strided and packed operands, in place, and the same bits in every way to run it. The backend
// under test is chosen at link time: layer_test_cpu.cpp (every instruction set of the machine; 1, 2
// and 3 threads) or cuda/testing/simulated/layer_test_simulated.cpp (three orders of threads).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/testing/test_runner.h"

namespace strata::kernels {

/// A tensor with its own memory; bytes between rows and after the end hold a pattern.
class TestOperand {
 public:
  explicit TestOperand(const TensorType& type);
  /// Makes normal deviates times `scale`, rounded to `dtype`.
  static TestOperand random(DType dtype, Shape shape, unsigned seed, double scale = 1);
  static TestOperand integers(const std::vector<std::int32_t>& values);
  static TestOperand integers(const std::vector<std::int64_t>& values);

  [[nodiscard]] Tensor view();
  [[nodiscard]] const TensorType& type() const { return type_; }
  /// Returns all elements, row after row.
  [[nodiscard]] std::vector<double> values() const;
  /// Returns the same elements with `gap` unused elements between rows.
  [[nodiscard]] TestOperand restrided(std::int64_t gap) const;
  /// Returns the bytes of the elements alone.
  [[nodiscard]] std::vector<std::byte> element_bytes() const;
  /// True if nothing was written outside the elements.
  [[nodiscard]] bool gaps_intact() const;

 private:
  TensorType type_;
  std::vector<std::byte> bytes_;
};

struct OperationCase {
  const Operation& operation;
  Kernel kernel;  ///< of the CPU
  std::vector<TestOperand> inputs;
  Attributes attributes;
  std::vector<std::vector<double>> expected;  ///< per output; an empty one is not compared
  double tolerance = 1e-6;                    ///< of fp32 outputs, |a - b| / |b|
  /// Elements between rows of the strided run on CUDA. Tests set it so that the kernel for packs
  /// runs if it would run without gaps, since the kernel for rows may give other bits.
  std::int64_t gap = 7;
};

/// Runs a case once and returns its outputs.
std::vector<TestOperand> run(const OperationCase& test, int threads = 1, std::int64_t gap = 0);

/// Does all checks named above, as GoogleTest expectations.
void verify(const OperationCase& test, const std::string& label);

/// The layout of the operands of one run.
struct RunForm {
  std::int64_t gap = 0;  ///< elements between rows
  bool in_place = false;
};

/// Runs a case through `runner`. Returns its outputs; expects that nothing beside them was written.
std::vector<TestOperand> run_once(const OperationCase& test, const Runner& runner,
                                  const RunForm& form = {});

/// GoogleTest expectations that outputs are within the case's tolerance, or equal in every bit.
void expect_close(const OperationCase& test, const std::vector<TestOperand>& outputs,
                  const std::string& label);
void expect_same_bits(const std::vector<TestOperand>& a, const std::vector<TestOperand>& b,
                      const std::string& label);

/// Returns |a - b| / |b| over all elements.
double relative_error(const std::vector<double>& a, const std::vector<double>& b);

constexpr DType kFloatTypes[] = {DType::f32, DType::bf16, DType::f16};

}  // namespace strata::kernels
