#include "kernels/ops/operand_check.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/error.h"

namespace strata::kernels {
namespace {

constexpr const char* kFloats = "fp32, bf16 or fp16";

bool is_float(DType type) {
  return type == DType::f32 || type == DType::bf16 || type == DType::f16;
}

}  // namespace

void OperandCheck::count(std::size_t least, std::size_t most) const {
  if (inputs_.size() >= least && inputs_.size() <= most) return;
  throw InvalidArgument(fmt::format("{}: {} operands, expected {}{}", operation_, inputs_.size(),
                                    least, most != least ? fmt::format(" to {}", most) : ""));
}

void OperandCheck::require(bool holds, std::size_t i, std::string_view name,
                           const std::string& expected) const {
  if (holds) return;
  throw InvalidArgument(
      fmt::format("{}: {} is {}, expected {}", operation_, name, inputs_[i].to_string(), expected));
}

const TensorType& OperandCheck::floats(std::size_t i, std::string_view name) const {
  require(is_float(inputs_[i].dtype), i, name, kFloats);
  return inputs_[i];
}

const TensorType& OperandCheck::floats(std::size_t i, std::string_view name,
                                       std::initializer_list<int> ndims) const {
  const TensorType& found = floats(i, name);
  require(std::ranges::find(ndims, found.shape.ndim()) != ndims.end(), i, name,
          fmt::format("{} dimensions", fmt::join(ndims, " or ")));
  return found;
}

void OperandCheck::shape(std::size_t i, std::string_view name, const Shape& expected) const {
  require(inputs_[i].shape == expected, i, name, expected.to_string());
}

void OperandCheck::dtype(std::size_t i, std::string_view name, DType expected) const {
  require(inputs_[i].dtype == expected, i, name, std::string(name_of(expected)));
}

void OperandCheck::type(std::size_t i, std::string_view name, const TensorType& expected) const {
  const TensorType& found = inputs_[i];
  require(found.dtype == expected.dtype && found.shape == expected.shape && found.contiguous(), i,
          name, expected.to_string());
}

void OperandCheck::contiguous(std::size_t i, std::string_view name) const {
  require(inputs_[i].contiguous(), i, name, "no gaps between rows");
}

void OperandCheck::random(std::size_t i, std::int64_t rows, std::int64_t sequence) const {
  dtype(i, "rng", DType::i64);
  shape(i, "rng", {2 + samples_of(operation_, rows, sequence)});
}

DType OperandCheck::float_attribute(const Attributes& attributes, std::string_view name) const {
  const auto dtype = static_cast<DType>(attributes.integer(name));
  if (!is_float(dtype))
    throw InvalidArgument(fmt::format("{}: attribute {} is {}, expected {}", operation_, name,
                                      name_of(dtype), kFloats));
  return dtype;
}

DType OperandCheck::gradient_dtype(const Attributes& attributes, DType otherwise) const {
  return attributes.has("gradient_dtype") ? float_attribute(attributes, "gradient_dtype")
                                          : otherwise;
}

std::int64_t samples_of(std::string_view operation, std::int64_t rows, std::int64_t sequence) {
  if (sequence <= 0 || rows % sequence != 0)
    throw InvalidArgument(fmt::format("{}: {} rows are no whole number of samples of sequence {}",
                                      operation, rows, sequence));
  return rows / sequence;
}

}  // namespace strata::kernels
