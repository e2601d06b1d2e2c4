#include "kernels/cuda/operation_products.h"

#include <algorithm>

#include "kernels/ops/linear.h"

namespace strata::cuda {
namespace {

kernels::Tensor rows_from(const kernels::Tensor& matrix, std::int64_t first, std::int64_t count) {
  return {kernels::TensorType(matrix.dtype(), {count, matrix.cols()}, matrix.row_stride()),
          matrix.data + first * matrix.row_stride() * size_of(matrix.dtype())};
}

std::vector<MatrixProduct> head_products(const kernels::KernelCall& call, bool train) {
  const HeadChunks chunks = head_chunks(call.inputs[0].type, call.inputs[1].type);
  std::vector<MatrixProduct> products;
  for (std::int64_t i = 0; i < chunks.chunks; ++i) {
    const HeadChunk chunk(call, chunks, i);
    products.push_back(chunk.forward());
    if (!train) continue;
    products.push_back(chunk.weight_gradient(call.outputs[2]));
    products.push_back(chunk.input_gradient(call.outputs[1]));
  }
  return products;
}

}  // namespace

MatrixProduct linear_product(const kernels::KernelCall& call) {
  return {.a = call.inputs[0],
          .b = call.inputs[1],
          .c = call.outputs[0],
          .b_transposed = !kernels::is_transposed(call.attributes),
          .bias = call.inputs.size() > 2 ? &call.inputs[2] : nullptr};
}

MatrixProduct linear_backward_input_product(const kernels::KernelCall& call) {
  return {.a = call.inputs[0],
          .b = call.inputs[1],
          .c = call.outputs[0],
          .b_transposed = kernels::is_transposed(call.attributes)};
}

MatrixProduct linear_backward_weight_product(const kernels::KernelCall& call) {
  const bool transposed = kernels::is_transposed(call.attributes);
  return {.a = call.inputs[transposed ? 1 : 0],
          .b = call.inputs[transposed ? 0 : 1],
          .c = call.outputs[0],
          .a_transposed = true};
}

HeadChunk::HeadChunk(const kernels::KernelCall& call, const HeadChunks& chunks, std::int64_t i)
    : first(i * chunks.chunk_rows), w(call.inputs[1]) {
  const kernels::Tensor& all = call.inputs[0];
  x = rows_from(all, first, std::min(chunks.chunk_rows, all.rows() - first));
  logits = {kernels::TensorType(x.dtype(), {x.rows(), w.rows()}, chunks.logits_stride),
            call.workspace.data()};
}

MatrixProduct HeadChunk::forward() const {
  return {.a = x, .b = w, .c = logits, .b_transposed = true};
}

MatrixProduct HeadChunk::weight_gradient(const kernels::Tensor& dw) const {
  return {.a = logits, .b = x, .c = dw, .a_transposed = true, .accumulate = first > 0};
}

MatrixProduct HeadChunk::input_gradient(const kernels::Tensor& dx) const {
  return {.a = logits, .b = w, .c = rows_from(dx, first, x.rows())};
}

std::vector<MatrixProduct> products_of(std::string_view operation,
                                       const kernels::KernelCall& call) {
  if (operation == "linear") return {linear_product(call)};
  if (operation == "linear_backward_input") return {linear_backward_input_product(call)};
  if (operation == "linear_backward_weight") return {linear_backward_weight_product(call)};
  if (operation == "head_loss") return head_products(call, true);
  if (operation == "head_loss_eval") return head_products(call, false);
  return {};
}

}  // namespace strata::cuda
