#include "kernels/ops/linear.h"

#include <algorithm>
#include <array>
#include <functional>

#include "kernels/cpu/columns.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/product_kernels.h"
#include "kernels/ops/linear_products.h"

namespace strata::kernels {

void linear_kernel(Stream& stream, const KernelCall& call) {
  Matmul product{.a = call.inputs[0], .b = call.inputs[1], .c = call.outputs[0]};
  product.b_transposed = !is_transposed(call.attributes);
  if (call.inputs.size() > 2) product.bias = &call.inputs[2];
  cpu(stream).matmul().run(product, call.workspace);
}

void linear_backward_input_kernel(Stream& stream, const KernelCall& call) {
  Matmul product{.a = call.inputs[0], .b = call.inputs[1], .c = call.outputs[0]};
  product.b_transposed = is_transposed(call.attributes);
  cpu(stream).matmul().run(product, call.workspace);
}

void linear_backward_weight_kernel(Stream& stream, const KernelCall& call) {
  const bool transposed = is_transposed(call.attributes);
  Matmul product{.a = call.inputs[transposed ? 1 : 0],
                 .b = call.inputs[transposed ? 0 : 1],
                 .c = call.outputs[0]};
  product.a_transposed = true;
  cpu(stream).matmul().run(product, call.workspace);
}

void linear_backward_bias_kernel(Stream& stream, const KernelCall& call) {
  const Tensor& dy = call.inputs[0];
  const Tensor& dbias = call.outputs[0];
  const auto block = [&](std::int64_t task, int) {
    const std::int64_t first = task * kColumnBlock;
    const std::int64_t count = std::min(kColumnBlock, dy.cols() - first);
    std::array<float, kColumnBlock> sums;
    sum_columns(dy, first, count, sums.data());
    convert_range(DType::f32, reinterpret_cast<const std::byte*>(sums.data()), dbias.dtype(),
                  dbias.data + first * size_of(dbias.dtype()), count);
  };
  cpu(stream).pool().parallel_for((dy.cols() + kColumnBlock - 1) / kColumnBlock, std::ref(block));
}

}  // namespace strata::kernels
