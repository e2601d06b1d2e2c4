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

  /// Requires `least` to `most` operands.
  void count(std::size_t least, std::size_t most) const;
  /// Requires that operand `i` is fp32, bf16 or fp16; returns its type.
  const TensorType& floats(std::size_t i, std::string_view name) const;
  /// Requires also that its number of dimensions is one of `ndims`.
  const TensorType& floats(std::size_t i, std::string_view name,
                           std::initializer_list<int> ndims) const;
  /// Require that operand `i` has exactly this shape, or this element type.
  void shape(std::size_t i, std::string_view name, const Shape& expected) const;
  void dtype(std::size_t i, std::string_view name, DType expected) const;
  /// Requires this shape and element type, and no gaps between rows.
  void type(std::size_t i, std::string_view name, const TensorType& expected) const;
  /// Requires that operand `i` has no gaps between rows.
  void contiguous(std::size_t i, std::string_view name) const;
  /// Requires `holds`, which is any other rule about operand `i`.
  void require(bool holds, std::size_t i, std::string_view name, const std::string& expected) const;
  /// Requires that operand `i` is int64 [2 + B]: seed, step and the B samples of `rows` rows, which
  /// have `sequence` positions each.
  void random(std::size_t i, std::int64_t rows, std::int64_t sequence) const;

  /// Returns attribute `name`, which must be there and hold the number of fp32, bf16 or fp16.
  [[nodiscard]] DType float_attribute(const Attributes& attributes, std::string_view name) const;
  /// Returns attribute `gradient_dtype` of a backward step, or `otherwise` if it is absent.
  [[nodiscard]] DType gradient_dtype(const Attributes& attributes, DType otherwise) const;

 private:
  std::string_view operation_;
  TypeSpan inputs_;
};

/// Returns rows / sequence. Throws InvalidArgument unless `rows` are whole samples of `sequence`.
std::int64_t samples_of(std::string_view operation, std::int64_t rows, std::int64_t sequence);

}  // namespace strata::kernels
