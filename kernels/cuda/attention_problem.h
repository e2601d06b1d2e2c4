// One call of attention as libraries must know it to plan it: numbers, no pointers.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "kernels/device/tensor.h"
#include "kernels/ops/operation.h"

namespace strata::cuda {

struct AttentionProblem {
  bool backward = false;
  DType dtype = DType::bf16;
  std::int64_t batch = 0;
  std::int64_t sequence = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  float scale = 1;
  /// Elements between positions. The last four only backward.
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0, o_stride = 0;
  std::int64_t dout_stride = 0, dq_stride = 0, dk_stride = 0, dv_stride = 0;

  auto operator<=>(const AttentionProblem&) const = default;
  /// "attention backward, bf16, B 8 T 1024 heads 16/2 D 128"
  [[nodiscard]] std::string to_string() const;
};

/// Reads a call of kernels/ops/attention.h: types of its inputs and outputs, its attributes.
AttentionProblem attention_problem(bool backward, kernels::TypeSpan inputs,
                                   kernels::TypeSpan outputs,
                                   const kernels::Attributes& attributes);

/// Why a library is not asked for these operands: "dropout"; empty when it is. Operands must have
/// one 16-bit type, no dropout, and rows of heads that are whole packs of 16 bytes.
std::string no_library_attention(bool backward, kernels::TypeSpan inputs, kernels::TypeSpan outputs,
                                 const kernels::Attributes& attributes);

/// Where sample `first` of a batch begins in an operand of it.
std::byte* sample_of(const kernels::Tensor& operand, std::int64_t batch, std::int64_t first);

}  // namespace strata::cuda
