#include "core/dtype.h"

#include <array>
#include <string>
#include <utility>

#include "core/error.h"

namespace strata {
namespace {
constexpr std::array<std::pair<DType, std::string_view>, 8> kNames{{{DType::f32, "fp32"},
                                                                    {DType::bf16, "bf16"},
                                                                    {DType::f16, "fp16"},
                                                                    {DType::f64, "fp64"},
                                                                    {DType::i32, "int32"},
                                                                    {DType::i64, "int64"},
                                                                    {DType::u8, "uint8"},
                                                                    {DType::i16, "int16"}}};
}

std::string_view name_of(DType type) {
  for (const auto& [value, name] : kNames)
    if (value == type) return name;
  return "?";
}

DType dtype_from_name(std::string_view name) {
  std::string known;
  for (const auto& [value, text] : kNames) {
    if (text == name) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw InvalidArgument("unknown element type '" + std::string(name) + "'; known: " + known);
}

}  // namespace strata
