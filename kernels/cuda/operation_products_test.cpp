// Compares the products that products_of says with those that kernels ask for.
#include "kernels/cuda/operation_products.h"

#include <gtest/gtest.h>

#include <optional>
#include <tuple>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/testing/simulated/simulated_stream.h"
#include "kernels/testing/product_test_support.h"

namespace strata::cuda {
namespace {

using kernels::Attributes;
using kernels::Operation;
using kernels::Tensor;
using kernels::TensorType;
using kernels::testing::Storage;

/// Returns all that distinguishes products.
auto facts(const MatrixProduct& p) {
  const auto operand = [](const Tensor& t) { return std::pair(t.type.to_string(), t.data); };
  std::optional<std::pair<std::string, std::byte*>> bias;
  if (p.bias != nullptr) bias = operand(*p.bias);
  return std::tuple(operand(p.a), operand(p.b), operand(p.c), p.a_transposed, p.b_transposed, bias,
                    p.accumulate);
}

/// Runs the operation, expects the products that products_of says, and returns their number.
std::size_t expect_as_said(std::string_view name, std::vector<Storage*> inputs,
                           const Attributes& attributes) {
  SCOPED_TRACE(name);
  const Operation& operation = kernels::find_operation(name);
  kernels::Types from;
  std::vector<Tensor> ins, outs;
  for (Storage* input : inputs) {
    from.push_back(input->type());
    ins.push_back(input->tensor());
  }
  const kernels::Types to = operation.infer(from, attributes);
  std::vector<Storage> outputs(to.begin(), to.end());
  for (Storage& output : outputs) outs.push_back(output.tensor());
  kernels::DeviceCapabilities device;
  device.backend = kernels::DeviceCapabilities::Backend::cuda;
  std::vector<std::byte> memory(64 + static_cast<std::size_t>(kernels::workspace_bytes(
                                         operation, from, to, attributes, device)));
  const auto past = reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
  const kernels::KernelCall call{
      ins, outs, std::span(memory).subspan((64 - past) % 64, memory.size() - 64), attributes};
  const std::vector<MatrixProduct> said = products_of(name, call);
  std::vector<MatrixProduct> ran;
  SimulatedStream stream(ThreadOrder::forward);
  stream.record_products(ran);
  cuda_kernels().find(name)(stream, call);
  EXPECT_EQ(said.size(), ran.size());
  for (std::size_t i = 0; i < std::min(said.size(), ran.size()); ++i)
    EXPECT_EQ(facts(said[i]), facts(ran[i])) << i;
  return ran.size();
}

TEST(OperationProducts, AreThoseOfLinearAndItsGradients) {
  for (const bool transposed : {false, true}) {
    const Attributes attributes{{"transposed", transposed ? 1 : 0}};
    Storage x(TensorType(DType::bf16, {6, 4}, 9), 1), dy(TensorType(DType::bf16, {6, 5}), 2);
    Storage w(transposed ? TensorType(DType::bf16, {4, 5}) : TensorType(DType::bf16, {5, 4}), 3);
    Storage bias(TensorType(DType::bf16, {5}), 4);
    EXPECT_EQ(expect_as_said("linear", {&x, &w}, attributes), 1U);
    EXPECT_EQ(expect_as_said("linear", {&x, &w, &bias}, attributes), 1U);
    EXPECT_EQ(expect_as_said("linear_backward_input", {&dy, &w}, attributes), 1U);
    EXPECT_EQ(expect_as_said("linear_backward_weight", {&dy, &x}, attributes), 1U);
    EXPECT_EQ(expect_as_said("linear_backward_bias", {&dy}, attributes), 0U);
  }
}

TEST(OperationProducts, AreThoseOfEveryChunkOfTheHead) {
  const auto [n, v] = kernels::testing::several_chunks();
  Storage x(TensorType(DType::bf16, {n, 8}), 1), w(TensorType(DType::bf16, {v, 8}), 2);
  Storage targets(TensorType(DType::i32, {n})), scale(TensorType(DType::f32, {2}));
  std::memset(targets.tensor().data, 0, static_cast<std::size_t>(n) * 4);
  std::memset(scale.tensor().data, 0, 8);
  const Attributes attributes{{"vocabulary", static_cast<double>(v - 1)}};
  EXPECT_EQ(expect_as_said("head_loss", {&x, &w, &targets, &scale}, attributes), 6U);
  EXPECT_EQ(expect_as_said("head_loss_eval", {&x, &w, &targets, &scale}, attributes), 2U);
}

}  // namespace
}  // namespace strata::cuda
