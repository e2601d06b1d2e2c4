#include "kernels/infer_checks.h"

#include <algorithm>
#include <string>

#include "core/error.h"

namespace strata::kernels {
namespace {

[[noreturn]] void fail(std::string_view operation, TypeSpan inputs, int input,
                       const std::string& expected) {
  throw InvalidArgument(std::string(operation) + ": operand " + std::to_string(input) + " is " +
                        inputs[static_cast<std::size_t>(input)].to_string() + ", expected " +
                        expected);
}

std::string names(std::initializer_list<DType> dtypes) {
  std::string text;
  for (DType dtype : dtypes) text += (text.empty() ? "" : " or ") + std::string(name_of(dtype));
  return text;
}

bool among(DType dtype, std::initializer_list<DType> dtypes) {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

}  // namespace

void expect_inputs(std::string_view operation, TypeSpan inputs, int least, int most) {
  const int found = static_cast<int>(inputs.size());
  if (found >= least && found <= most) return;
  throw InvalidArgument(std::string(operation) + ": " + std::to_string(found) +
                        " operands, expected " +
                        (least == most ? std::to_string(least)
                                       : std::to_string(least) + " to " + std::to_string(most)));
}

void expect_dtype(std::string_view operation, TypeSpan inputs, int input,
                  std::initializer_list<DType> dtypes) {
  if (!among(inputs[static_cast<std::size_t>(input)].dtype, dtypes))
    fail(operation, inputs, input, names(dtypes));
}

void expect_type(std::string_view operation, TypeSpan inputs, int input, const TensorType& type) {
  const TensorType& found = inputs[static_cast<std::size_t>(input)];
  if (found.dtype != type.dtype || found.shape != type.shape || !found.contiguous())
    fail(operation, inputs, input, type.to_string());
}

void expect_same_shape(std::string_view operation, TypeSpan inputs, int input, int like) {
  const Shape& shape = inputs[static_cast<std::size_t>(like)].shape;
  if (inputs[static_cast<std::size_t>(input)].shape != shape)
    fail(operation, inputs, input, "shape " + shape.to_string());
}

void expect_contiguous(std::string_view operation, TypeSpan inputs, int input) {
  if (!inputs[static_cast<std::size_t>(input)].contiguous())
    fail(operation, inputs, input, "no gaps between rows");
}

DType dtype_attribute(std::string_view operation, const Attributes& attributes,
                      std::string_view name, std::initializer_list<DType> dtypes) {
  const auto dtype = static_cast<DType>(attributes.integer(name));
  if (!among(dtype, dtypes))
    throw InvalidArgument(std::string(operation) + ": attribute " + std::string(name) + " is " +
                          std::string(name_of(dtype)) + ", expected " + names(dtypes));
  return dtype;
}

}  // namespace strata::kernels
