// The description of a call of attention that a library needs for its plan: numbers, no pointers.
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
  /// Elements between positions. The last four are for the backward pass only.
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0, o_stride = 0;
  std::int64_t dout_stride = 0, dq_stride = 0, dk_stride = 0, dv_stride = 0;

  auto operator<=>(const AttentionProblem&) const = default;
  /// "attention backward, bf16, B 8 T 1024 heads 16/2 D 128"
  [[nodiscard]] std::string to_string() const;
};

/// Describes a call of kernels/ops/attention.h, given its types and attributes.
AttentionProblem attention_problem(bool backward, kernels::TypeSpan inputs,
                                   kernels::TypeSpan outputs,
                                   const kernels::Attributes& attributes);

/// Says why a library is not asked for these operands ("dropout"); empty when it is. It is asked if
/// all have one 16-bit type and rows of whole 16-byte packs, and there is no dropout.
std::string no_library_attention(bool backward, kernels::TypeSpan inputs, kernels::TypeSpan outputs,
                                 const kernels::Attributes& attributes);

/// The address at which sample `first` begins in an operand of `batch` samples.
std::byte* sample_of(const kernels::Tensor& operand, std::int64_t batch, std::int64_t first);

}  // namespace strata::cuda
