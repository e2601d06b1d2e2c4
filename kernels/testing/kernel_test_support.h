// Helpers of the tests of kernels around a step: typed storage for operands, calls on the backend
// under test.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/cpu/convert.h"
#include "kernels/testing/test_runner.h"

namespace strata::kernels {

/// A tensor that owns its bytes.
class TestTensor {
 public:
  explicit TestTensor(const TensorType& type)
      : type_(type), bytes_(static_cast<std::size_t>(type.span_bytes())) {}
  template <typename T>
  TestTensor(DType dtype, Shape shape, const std::vector<T>& values)
      : TestTensor(TensorType(dtype, shape)) {
    if (!values.empty()) std::memcpy(bytes_.data(), values.data(), bytes_.size());
  }
  /// Makes a vector of bytes of a struct or an array.
  template <typename T>
  static TestTensor from_struct(const T& value) {
    TestTensor tensor(TensorType(DType::u8, {static_cast<std::int64_t>(sizeof value)}));
    std::memcpy(tensor.bytes_.data(), &value, sizeof value);
    return tensor;
  }

  [[nodiscard]] Tensor view() { return {type_, bytes_.data()}; }
  template <typename T>
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> copy(bytes_.size() / sizeof(T));
    std::memcpy(copy.data(), bytes_.data(), bytes_.size());
    return copy;
  }
  template <typename T>
  [[nodiscard]] T as_struct() const {
    T value;
    std::memcpy(&value, bytes_.data(), sizeof value);
    return value;
  }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }

 private:
  TensorType type_;
  std::vector<std::byte> bytes_;
};

/// Runs `operation`. If `in_place`, outputs take the storage of inputs where the operation declares
/// an alias. Returns all outputs (views of `inputs` or of `fresh`).
inline std::vector<Tensor> run_kernel(const Runner& runner, const Operation& operation,
                                      std::vector<TestTensor>& inputs, const Attributes& attributes,
                                      std::vector<TestTensor>& fresh, bool in_place = true) {
  std::vector<Tensor> views;
  Types types;
  for (TestTensor& input : inputs) {
    views.push_back(input.view());
    types.push_back(views.back().type);
  }
  const Types output_types = operation.infer(types, attributes);
  std::vector<Tensor> outputs(output_types.size());
  fresh.reserve(output_types.size());
  for (const Alias& alias : operation.aliases)
    if (in_place && static_cast<std::size_t>(alias.output) < outputs.size() &&
        static_cast<std::size_t>(alias.input) < views.size())
      outputs[static_cast<std::size_t>(alias.output)] =
          views[static_cast<std::size_t>(alias.input)];
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].data != nullptr) continue;
    fresh.emplace_back(output_types[i]);
    outputs[i] = fresh.back().view();
  }
  runner(operation, views, outputs, attributes);
  return outputs;
}

/// Returns normal deviates times `scale`, the same for the same seed.
inline std::vector<float> random_floats(std::int64_t count, std::uint32_t seed, float scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = scale * normal(generator);
  return values;
}

/// Makes a flat tensor of `values`, after rounding them to nearest even numbers of `dtype`.
inline TestTensor rounded_tensor(DType dtype, std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  auto* numbers = reinterpret_cast<std::byte*>(values.data());
  TestTensor tensor(TensorType(dtype, Shape{count}));
  convert_range(DType::f32, numbers, dtype, tensor.bytes().data(), count);
  convert_range(dtype, tensor.bytes().data(), DType::f32, numbers, count);
  return tensor;
}

}  // namespace strata::kernels
