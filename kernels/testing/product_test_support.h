// Helpers of the tests of products: random operands of any type, as they are stored and as doubles,
// and calls on the backend under test, which is chosen at link time (product_test_cpu.cpp or
// cuda/testing/simulated/product_test_simulated.cpp).
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/convert.h"
#include "kernels/testing/test_runner.h"

namespace strata::kernels::testing {

/// A tensor with its storage; its rows may have gaps. Gaps and new storage hold NaN, so that
/// reading what was never written is noticed.
class Storage {
 public:
  explicit Storage(const TensorType& type)
      : type_(type), bytes_(static_cast<std::size_t>(type.span_bytes() + 64), std::byte{0xff}) {}
  /// Fills it with random values of about `scale`.
  Storage(const TensorType& type, unsigned seed, double scale = 1.0) : Storage(type) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0F, static_cast<float>(scale));
    for (std::int64_t r = 0; r < type.shape.rows(); ++r)
      for (std::int64_t c = 0; c < type.shape.cols(); ++c) set(r, c, normal(random));
  }

  [[nodiscard]] Tensor tensor() {
    auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    return {type_, bytes_.data() + (64 - address % 64) % 64};
  }
  [[nodiscard]] const TensorType& type() const { return type_; }
  void set(std::int64_t row, std::int64_t col, float value) {
    convert_range(DType::f32, reinterpret_cast<const std::byte*>(&value), type_.dtype, at(row, col),
                  1);
  }
  [[nodiscard]] std::vector<double> values() {
    std::vector<double> result;
    for (std::int64_t r = 0; r < type_.shape.rows(); ++r)
      for (std::int64_t c = 0; c < type_.shape.cols(); ++c) result.push_back(value(r, c));
    return result;
  }
  [[nodiscard]] std::vector<std::byte> bytes() {
    const Tensor t = tensor();
    return {t.data, t.data + type_.span_bytes()};
  }

 private:
  std::byte* at(std::int64_t row, std::int64_t col) {
    return tensor().data + (row * type_.row_stride + col) * size_of(type_.dtype);
  }
  double value(std::int64_t row, std::int64_t col) {
    if (type_.dtype == DType::f64) return *reinterpret_cast<double*>(at(row, col));
    float value = 0;
    convert_range(type_.dtype, at(row, col), DType::f32, reinterpret_cast<std::byte*>(&value), 1);
    return value;
  }

  TensorType type_;
  std::vector<std::byte> bytes_;
};

/// Returns |a - b| / |b| over all elements; infinity if an element of a is NaN.
inline double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0;
  double size = 0;
  if (a.size() != b.size()) return INFINITY;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::isnan(difference) ? INFINITY : std::sqrt(difference / (size > 0 ? size : 1));
}

/// Returns how far a result of this type may be from the exact one.
inline double tolerance(DType type) {
  return type == DType::f32 ? 2e-6 : type == DType::bf16 ? 3e-3 : 4e-4;
}

/// Runs an operation by name; its outputs have the types that infer() returns.
inline std::vector<Storage> run_operation(std::string_view name, std::vector<Storage*> inputs,
                                          const Attributes& attributes,
                                          const Runner& runner = any_runner()) {
  const Operation& operation = find_operation(name);
  Types input_types;
  std::vector<Tensor> tensors;
  for (Storage* input : inputs) {
    input_types.push_back(input->type());
    tensors.push_back(input->tensor());
  }
  const Types output_types = operation.infer(input_types, attributes);
  std::vector<Storage> outputs(output_types.begin(), output_types.end());
  std::vector<Tensor> output_tensors;
  for (Storage& output : outputs) output_tensors.push_back(output.tensor());
  runner(operation, tensors, output_tensors, attributes);
  return outputs;
}

/// Returns ways to run products that must give the same bits: thread counts, or orders of threads.
std::vector<NamedRunner> runners_of_equal_bits();

/// Returns the type in which the backend keeps the logits of activations of type `x`.
DType logits_type(DType x);

/// The rows and columns of logits, enough that head_loss cuts the rows into several chunks.
struct LogitsShape {
  std::int64_t rows, cols;
};
LogitsShape several_chunks();

}  // namespace strata::kernels::testing
