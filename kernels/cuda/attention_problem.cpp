#include "kernels/cuda/attention_problem.h"

#include <fmt/core.h>
#include <vector>

namespace strata::cuda {
namespace {

using kernels::Attributes;
using kernels::TensorType;
using kernels::TypeSpan;

constexpr std::int64_t kPack = 8;  // elements of 16 bits in 16 bytes

/// The operands of shape [N, heads, D]: all but lse and rng.
std::vector<TensorType> head_operands(bool backward, TypeSpan inputs, TypeSpan outputs) {
  const TypeSpan in = inputs.first(backward ? 5 : 3), out = outputs.first(backward ? 3 : 1);
  std::vector<TensorType> operands(in.begin(), in.end());
  operands.insert(operands.end(), out.begin(), out.end());
  return operands;
}

}  // namespace

std::string AttentionProblem::to_string() const {
  return fmt::format("attention{}, {}, B {} T {} heads {}/{} D {}", backward ? " backward" : "",
                     name_of(dtype), batch, sequence, heads, kv_heads, head_size);
}

AttentionProblem attention_problem(bool backward, TypeSpan inputs, TypeSpan outputs,
                                   const Attributes& attributes) {
  const std::size_t first = backward ? 1 : 0;
  const TensorType &q = inputs[first], &k = inputs[first + 1], &v = inputs[first + 2];
  AttentionProblem problem{.backward = backward,
                           .dtype = q.dtype,
                           .sequence = attributes.integer("sequence"),
                           .heads = q.shape[1],
                           .kv_heads = k.shape[1],
                           .head_size = q.shape[2],
                           .scale = static_cast<float>(attributes.real("scale")),
                           .q_stride = q.row_stride,
                           .k_stride = k.row_stride,
                           .v_stride = v.row_stride,
                           .o_stride = (backward ? inputs[4] : outputs[0]).row_stride};
  problem.batch = q.shape[0] / problem.sequence;
  if (!backward) return problem;
  problem.dout_stride = inputs[0].row_stride;
  problem.dq_stride = outputs[0].row_stride;
  problem.dk_stride = outputs[1].row_stride;
  problem.dv_stride = outputs[2].row_stride;
  return problem;
}

std::string no_library_attention(bool backward, TypeSpan inputs, TypeSpan outputs,
                                 const Attributes& attributes) {
  if (attributes.real("p", 0) > 0) return "dropout";
  const std::vector<TensorType> operands = head_operands(backward, inputs, outputs);
  const TensorType& first = operands.front();
  if (size_of(first.dtype) != 2) return "elements that have not 16 bits";
  const TensorType& lse = backward ? inputs[5] : outputs[1];
  if (!lse.contiguous()) return "a log-sum-exp with gaps";
  for (const TensorType& type : operands) {
    if (type.dtype != first.dtype) return "operands of several types";
    if (type.shape[2] % kPack != 0 || type.row_stride % kPack != 0)
      return "rows that are not whole packs of 16 bytes";
  }
  return first.shape.elements() == 0 ? "no rows" : "";
}

std::byte* sample_of(const kernels::Tensor& operand, std::int64_t batch, std::int64_t first) {
  const std::int64_t row = operand.rows() / batch * first;
  return operand.data + row * operand.row_stride() * size_of(operand.dtype());
}

}  // namespace strata::cuda
