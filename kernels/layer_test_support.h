// One check for every operation of a layer: against its reference, for every instruction set of the
// machine, with 1, 2 and 3 threads (same bits), with strided and packed operands, and in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/operation.h"
#include "kernels/stream.h"

namespace strata::kernels {

/// A tensor with its own memory; bytes between rows and behind the end hold a pattern.
class TestOperand {
 public:
  explicit TestOperand(const TensorType& type);
  /// Normal deviates times `scale`, rounded to `dtype`.
  static TestOperand random(DType dtype, Shape shape, unsigned seed, double scale = 1);
  static TestOperand integers(const std::vector<std::int32_t>& values);
  static TestOperand integers(const std::vector<std::int64_t>& values);

  [[nodiscard]] Tensor view();
  [[nodiscard]] const TensorType& type() const { return type_; }
  /// All elements, rows after one another.
  [[nodiscard]] std::vector<double> values() const;
  /// The same elements with `gap` more elements between rows.
  [[nodiscard]] TestOperand restrided(std::int64_t gap) const;
  /// Bytes of the elements alone.
  [[nodiscard]] std::vector<std::byte> element_bytes() const;
  /// Nothing was written outside the elements.
  [[nodiscard]] bool gaps_intact() const;

 private:
  TensorType type_;
  std::vector<std::byte> bytes_;
};

struct OperationCase {
  const Operation& operation;
  Kernel kernel;
  std::vector<TestOperand> inputs;
  Attributes attributes;
  std::vector<std::vector<double>> expected;  ///< per output; an empty one is not compared
  double tolerance = 1e-6;                    ///< of fp32 outputs, |a - b| / |b|
};

/// Runs a case once and returns its outputs.
std::vector<TestOperand> run(const OperationCase& test, int threads = 1, std::int64_t gap = 0);

/// All checks named above, as GoogleTest expectations.
void verify(const OperationCase& test, const std::string& label);

/// Kernels use one instruction set (a Highway target) while this lives.
class TargetScope {
 public:
  explicit TargetScope(std::int64_t target);
  ~TargetScope();
  TargetScope(const TargetScope&) = delete;
  TargetScope& operator=(const TargetScope&) = delete;
};

/// |a - b| / |b| over all elements.
double relative_error(const std::vector<double>& a, const std::vector<double>& b);

constexpr DType kFloatTypes[] = {DType::f32, DType::bf16, DType::f16};

}  // namespace strata::kernels
