#include "train/inspect/element_values.h"

#include <cstring>

#include "train/files/convert.h"

namespace strata::train {
namespace {

template <typename Integer>
void widen(const std::byte* in, double* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    Integer value = 0;
    std::memcpy(&value, in + i * static_cast<std::int64_t>(sizeof value), sizeof value);
    out[i] = static_cast<double>(value);
  }
}

}  // namespace

void to_doubles(DType dtype, const std::byte* in, double* out, std::int64_t count) {
  switch (dtype) {
    case DType::f32:
    case DType::bf16:
    case DType::f16:
    case DType::f64:
      convert_elements(dtype, in, DType::f64, reinterpret_cast<std::byte*>(out), count);
      return;
    case DType::i64:
      return widen<std::int64_t>(in, out, count);
    case DType::i32:
      return widen<std::int32_t>(in, out, count);
    case DType::i16:
      return widen<std::int16_t>(in, out, count);
    case DType::u8:
      return widen<std::uint8_t>(in, out, count);
  }
}

}  // namespace strata::train
