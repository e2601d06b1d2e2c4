#include "kernels/testing/layer_test_support.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernels/math/float16.h"

namespace strata::kernels {
namespace {

constexpr std::byte kPattern{0xA5};
constexpr std::size_t kGuardBytes = 64;

double element(const std::byte* at, DType type) {
  std::uint16_t half;
  float single;
  switch (type) {
    case DType::bf16:
      std::memcpy(&half, at, sizeof half);
      return bf16_to_f32(half);
    case DType::f16:
      std::memcpy(&half, at, sizeof half);
      return f16_to_f32(half);
    default:
      std::memcpy(&single, at, sizeof single);
      return single;
  }
}

void set_element(std::byte* at, DType type, double value) {
  const auto single = static_cast<float>(value);
  const std::uint16_t half = type == DType::bf16 ? f32_to_bf16(single) : f32_to_f16(single);
  if (type == DType::f32)
    std::memcpy(at, &single, sizeof single);
  else
    std::memcpy(at, &half, sizeof half);
}

double tolerance_of(DType type, double f32_tolerance) {
  if (type == DType::bf16) return 0x1p-8;  // half a unit in the last place, at worst
  if (type == DType::f16) return 0x1p-11;
  return f32_tolerance;
}

/// Returns the input whose storage `output` may take, or -1.
int aliased_input(const OperationCase& test, std::size_t output) {
  for (const Alias& alias : test.operation.aliases)
    if (static_cast<std::size_t>(alias.output) == output &&
        static_cast<std::size_t>(alias.input) < test.inputs.size())
      return alias.input;
  return -1;
}

/// Returns "worst at 17 of fp32[4, 7]: 0.5 for 0.25": the first NaN, else the largest difference.
std::string worst_element(const TensorType& type, const std::vector<double>& values,
                          const std::vector<double>& expected) {
  if (values.size() != expected.size()) return "sizes differ";
  std::size_t worst = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      worst = i;
      break;
    }
    if (std::abs(values[i] - expected[i]) > std::abs(values[worst] - expected[worst])) worst = i;
  }
  return "worst at " + std::to_string(worst) + " of " + type.to_string() + ": " +
         std::to_string(values[worst]) + " for " + std::to_string(expected[worst]);
}

}  // namespace

TestOperand::TestOperand(const TensorType& type)
    : type_(type), bytes_(static_cast<std::size_t>(type.span_bytes()) + kGuardBytes, kPattern) {}

TestOperand TestOperand::random(DType dtype, Shape shape, unsigned seed, double scale) {
  TestOperand operand(TensorType(dtype, shape));
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    set_element(operand.bytes_.data() + i * size_of(dtype), dtype, scale * normal(engine));
  return operand;
}

TestOperand TestOperand::integers(const std::vector<std::int32_t>& values) {
  TestOperand operand(TensorType(DType::i32, {static_cast<std::int64_t>(values.size())}));
  std::memcpy(operand.bytes_.data(), values.data(), values.size() * sizeof(values[0]));
  return operand;
}

TestOperand TestOperand::integers(const std::vector<std::int64_t>& values) {
  TestOperand operand(TensorType(DType::i64, {static_cast<std::int64_t>(values.size())}));
  std::memcpy(operand.bytes_.data(), values.data(), values.size() * sizeof(values[0]));
  return operand;
}

Tensor TestOperand::view() { return {type_, bytes_.data()}; }

std::vector<double> TestOperand::values() const {
  std::vector<double> values;
  const std::int64_t size = size_of(type_.dtype);
  for (std::int64_t r = 0; r < type_.shape.rows(); ++r)
    for (std::int64_t c = 0; c < type_.shape.cols(); ++c)
      values.push_back(element(bytes_.data() + (r * type_.row_stride + c) * size, type_.dtype));
  return values;
}

TestOperand TestOperand::restrided(std::int64_t gap) const {
  if (type_.shape.ndim() < 2) return *this;
  TestOperand other(TensorType(type_.dtype, type_.shape, type_.shape.cols() + gap));
  const std::int64_t size = size_of(type_.dtype);
  for (std::int64_t r = 0; r < type_.shape.rows(); ++r)
    std::memcpy(other.bytes_.data() + r * other.type_.row_stride * size,
                bytes_.data() + r * type_.row_stride * size,
                static_cast<std::size_t>(type_.shape.cols() * size));
  return other;
}

std::vector<std::byte> TestOperand::element_bytes() const {
  const TestOperand packed = restrided(0);
  return {packed.bytes_.begin(), packed.bytes_.end()};
}

bool TestOperand::gaps_intact() const {
  const std::int64_t size = size_of(type_.dtype), row = type_.row_stride * size;
  const std::int64_t used = type_.shape.cols() * size;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(bytes_.size()); ++i) {
    const bool inside = type_.shape.ndim() < 2 ? i < type_.shape.elements() * size
                                               : i / row < type_.shape.rows() && i % row < used;
    if (!inside && bytes_[static_cast<std::size_t>(i)] != kPattern) return false;
  }
  return true;
}

std::vector<TestOperand> run_once(const OperationCase& test, const Runner& runner,
                                  const RunForm& form) {
  std::vector<TestOperand> inputs, outputs;
  Types types;
  for (const TestOperand& input : test.inputs) {
    inputs.push_back(form.gap > 0 ? input.restrided(form.gap) : input);
    types.push_back(inputs.back().type());
  }
  for (const TensorType& type : test.operation.infer(types, test.attributes))
    outputs.push_back(form.gap > 0 ? TestOperand(type).restrided(form.gap) : TestOperand(type));
  std::vector<Tensor> from, to;
  for (TestOperand& input : inputs) from.push_back(input.view());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const int alias = form.in_place ? aliased_input(test, i) : -1;
    to.push_back(alias >= 0 ? from[static_cast<std::size_t>(alias)] : outputs[i].view());
  }
  runner(test.operation, from, to, test.attributes);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (const int alias = form.in_place ? aliased_input(test, i) : -1; alias >= 0)
      outputs[i] = inputs[static_cast<std::size_t>(alias)];
  for (const TestOperand& operand : inputs) EXPECT_TRUE(operand.gaps_intact());
  for (const TestOperand& operand : outputs) EXPECT_TRUE(operand.gaps_intact());
  return outputs;
}

void expect_close(const OperationCase& test, const std::vector<TestOperand>& outputs,
                  const std::string& label) {
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (i < test.expected.size() && !test.expected[i].empty()) {
      EXPECT_LE(relative_error(outputs[i].values(), test.expected[i]),
                tolerance_of(outputs[i].type().dtype, test.tolerance))
          << label << ", output " << i << ", "
          << worst_element(outputs[i].type(), outputs[i].values(), test.expected[i]);
    }
}

void expect_same_bits(const std::vector<TestOperand>& a, const std::vector<TestOperand>& b,
                      const std::string& label) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(a[i].element_bytes() == b[i].element_bytes()) << label << ", output " << i;
}

double relative_error(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference / norm);
}

}  // namespace strata::kernels
