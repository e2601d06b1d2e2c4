// Checks that infer functions share. They throw InvalidArgument naming operation and operand, what
// was found and what is expected.
#pragma once

#include <initializer_list>
#include <string_view>

#include "kernels/operation.h"

namespace strata::kernels {

/// Between `least` and `most` operands.
void expect_inputs(std::string_view operation, TypeSpan inputs, int least, int most);
/// Operand `input` has one of `dtypes`.
void expect_dtype(std::string_view operation, TypeSpan inputs, int input,
                  std::initializer_list<DType> dtypes);
/// Operand `input` has exactly this type, without gaps between rows.
void expect_type(std::string_view operation, TypeSpan inputs, int input, const TensorType& type);
/// Operand `input` has the shape of operand `like`.
void expect_same_shape(std::string_view operation, TypeSpan inputs, int input, int like);
/// Operand `input` is one contiguous range.
void expect_contiguous(std::string_view operation, TypeSpan inputs, int input);
/// Attribute `name` holds the number of one of `dtypes`; returns it.
DType dtype_attribute(std::string_view operation, const Attributes& attributes,
                      std::string_view name, std::initializer_list<DType> dtypes);

}  // namespace strata::kernels
