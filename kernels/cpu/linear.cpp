#include "kernels/ops/linear.h"

#include "kernels/cpu/columns.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/float_rows.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/product_kernels.h"
#include "kernels/cpu/ranges.h"
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
  for_each_range(&cpu(stream).pool(), dy.cols(), kColumnBlock,
                 [&](std::int64_t begin, std::int64_t end) {
                   float sums[kColumnBlock];
                   sum_columns(dy, begin, end - begin, sums);
                   store_floats(sums, element(dbias, 0, begin), dbias.dtype(), end - begin);
                 });
}

}  // namespace strata::kernels
