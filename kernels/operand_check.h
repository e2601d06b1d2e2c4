// Checks of operand types for Operation::infer, with messages that name operand, found and
// expected.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "kernels/operation.h"

namespace strata::kernels {

/// Each check throws InvalidArgument such as "norm: weight is fp32[3], expected [768]".
class OperandCheck {
 public:
  OperandCheck(std::string_view operation, TypeSpan inputs)
      : operation_(operation), inputs_(inputs) {}

  /// Between `least` and `most` inputs.
  void count(std::size_t least, std::size_t most) const;
  /// Input `i` is fp32, bf16 or fp16 and has as many dimensions as one of `ndims`.
  const TensorType& floats(std::size_t i, std::string_view name,
                           std::initializer_list<int> ndims) const;
  /// Input `i` has exactly this shape.
  void shape(std::size_t i, std::string_view name, const Shape& expected) const;
  void dtype(std::size_t i, std::string_view name, DType expected) const;
  /// Any other rule about input `i`.
  void require(bool holds, std::size_t i, std::string_view name, const std::string& expected) const;
  /// Input `i` is the int64 [2 + batch] of seed, step and samples, for rows of `sequence`
  /// positions.
  void random(std::size_t i, std::int64_t rows, std::int64_t sequence) const;

 private:
  std::string_view operation_;
  TypeSpan inputs_;
};

/// Rows must be whole samples of `sequence` positions: rows / sequence. Throws InvalidArgument.
std::int64_t samples_of(std::string_view operation, std::int64_t rows, std::int64_t sequence);

/// Attribute `gradient_dtype` of a backward step, else `otherwise`.
DType gradient_dtype(const Attributes& attributes, DType otherwise);

bool is_float(DType type);

}  // namespace strata::kernels
