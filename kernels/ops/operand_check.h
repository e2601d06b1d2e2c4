// Checks of operands and attributes for Operation::infer, with messages that name the operation,
// the operand, what was found and what is expected.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "kernels/ops/operation.h"

namespace strata::kernels {

/// Each check throws InvalidArgument such as "norm: weight is fp32[3], expected [768]". Checks of
/// an operand rely on count() before them.
class OperandCheck {
 public:
  OperandCheck(std::string_view operation, TypeSpan inputs)
      : operation_(operation), inputs_(inputs) {}

  /// Between `least` and `most` operands.
  void count(std::size_t least, std::size_t most) const;
  /// Operand `i` is fp32, bf16 or fp16; returns its type.
  const TensorType& floats(std::size_t i, std::string_view name) const;
  /// ... and has as many dimensions as one of `ndims`.
  const TensorType& floats(std::size_t i, std::string_view name,
                           std::initializer_list<int> ndims) const;
  /// Operand `i` has exactly this shape, or this element type.
  void shape(std::size_t i, std::string_view name, const Shape& expected) const;
  void dtype(std::size_t i, std::string_view name, DType expected) const;
  /// Both, and no gaps between rows.
  void type(std::size_t i, std::string_view name, const TensorType& expected) const;
  /// Operand `i` has no gaps between rows.
  void contiguous(std::size_t i, std::string_view name) const;
  /// Any other rule about operand `i`.
  void require(bool holds, std::size_t i, std::string_view name, const std::string& expected) const;
  /// Operand `i` is the int64 [2 + batch] of seed, step and samples, for rows of `sequence`
  /// positions.
  void random(std::size_t i, std::int64_t rows, std::int64_t sequence) const;

  /// Attribute `name`, which holds the number of fp32, bf16 or fp16. Throws when absent, too.
  [[nodiscard]] DType float_attribute(const Attributes& attributes, std::string_view name) const;
  /// Attribute `gradient_dtype` of a backward step, else `otherwise`.
  [[nodiscard]] DType gradient_dtype(const Attributes& attributes, DType otherwise) const;

 private:
  std::string_view operation_;
  TypeSpan inputs_;
};

/// Rows must be whole samples of `sequence` positions: rows / sequence. Throws InvalidArgument.
std::int64_t samples_of(std::string_view operation, std::int64_t rows, std::int64_t sequence);

}  // namespace strata::kernels
