// Element types of values, files and wires.
#pragma once

#include <cstdint>
#include <string_view>

namespace strata {

enum class DType : std::uint8_t { f32, bf16, f16, f64, i32, i64, u8, i16 };

/// Bytes of one element.
constexpr std::int64_t size_of(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
    case DType::i16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

/// "fp32", "bf16", "fp16", "fp64", "int32", "int64", "uint8", "int16".
std::string_view name_of(DType type);

/// Inverse of name_of; throws InvalidArgument that lists the known names.
DType dtype_from_name(std::string_view name);

}  // namespace strata
