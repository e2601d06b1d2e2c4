#include "train/files/convert.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "core/check.h"

namespace strata::train {
namespace {

struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};

float widen(float v) { return v; }
float widen(Bf16 v) { return std::bit_cast<float>(static_cast<std::uint32_t>(v.bits) << 16); }

float widen(F16 v) {
  const std::uint32_t sign = static_cast<std::uint32_t>(v.bits & 0x8000U) << 16;
  const std::uint32_t magnitude = v.bits & 0x7fffU;
  // Infinity and NaN need the full exponent; scaling the rest by 2^112 is exact, even subnormals.
  if (magnitude >= 0x7c00U)
    return std::bit_cast<float>(sign | 0x7f800000U | (magnitude & 0x3ffU) << 13);
  const float value = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

/// Rounds to float, to odd, so that rounding again to a narrower type equals rounding once.
float narrow_to_odd(double v) {
  const auto nearest = static_cast<float>(v);
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (static_cast<double>(nearest) == v || std::isnan(v) || (bits & 1U) != 0) return nearest;
  const bool too_small = std::fabs(static_cast<double>(nearest)) < std::fabs(v);
  return std::bit_cast<float>(too_small ? bits + 1 : bits - 1);
}

void narrow(float v, float& out) { out = v; }

void narrow(float v, Bf16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const std::uint32_t rounded = bits + 0x7fffU + (bits >> 16 & 1U);
  const std::uint32_t quiet_nan = (bits >> 16) | 0x40U;
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  out.bits = static_cast<std::uint16_t>(is_nan ? quiet_nan : rounded >> 16);
}

void narrow(float v, F16& out) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t result = 0;
  if (magnitude > 0x7f800000U) {
    result = 0x7e00U | (magnitude >> 13 & 0x3ffU);
  } else if (magnitude >= 0x477ff000U) {  // 65520: halfway to the first value too large
    result = 0x7c00U;
  } else if (magnitude < 0x38800000U) {  // below 2^-14: subnormal, a multiple of 2^-24
    // Adding 0.5 puts the multiple of 2^-24, rounded to nearest even, in the low bits.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    result = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5F);
  } else {
    const std::uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13 & 1U);
    result = (rounded - 0x38000000U) >> 13;
  }
  out.bits = static_cast<std::uint16_t>(sign | result);
}

template <typename Source, typename Target>
void convert_loop(const std::byte* in, std::byte* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    Source source;
    std::memcpy(&source, in + i * static_cast<std::int64_t>(sizeof source), sizeof source);
    Target target;
    if constexpr (std::is_same_v<Source, double> && std::is_same_v<Target, float>) {
      target = static_cast<float>(source);
    } else if constexpr (std::is_same_v<Source, double>) {
      narrow(narrow_to_odd(source), target);
    } else if constexpr (std::is_same_v<Target, double>) {
      target = widen(source);
    } else {
      narrow(widen(source), target);
    }
    std::memcpy(out + i * static_cast<std::int64_t>(sizeof target), &target, sizeof target);
  }
}

template <typename Source>
void convert_from(const std::byte* in, DType target, std::byte* out, std::int64_t count) {
  switch (target) {
    case DType::f32:
      return convert_loop<Source, float>(in, out, count);
    case DType::bf16:
      return convert_loop<Source, Bf16>(in, out, count);
    case DType::f16:
      return convert_loop<Source, F16>(in, out, count);
    case DType::f64:
      if constexpr (!std::is_same_v<Source, double>)
        return convert_loop<Source, double>(in, out, count);
      break;
    default:
      break;
  }
  STRATA_CHECK(false, "no conversion to", name_of(target));
}

bool is_float(DType type) {
  return type == DType::f32 || type == DType::bf16 || type == DType::f16 || type == DType::f64;
}

}  // namespace

bool can_convert(DType source, DType target) {
  return source == target || (is_float(source) && is_float(target));
}

void convert_elements(DType source, const std::byte* in, DType target, std::byte* out,
                      std::int64_t count) {
  STRATA_CHECK(can_convert(source, target), name_of(source), name_of(target));
  if (count == 0) return;
  if (source == target) {
    std::memcpy(out, in, static_cast<std::size_t>(count * size_of(source)));
    return;
  }
  switch (source) {
    case DType::f32:
      return convert_from<float>(in, target, out, count);
    case DType::bf16:
      return convert_from<Bf16>(in, target, out, count);
    case DType::f16:
      return convert_from<F16>(in, target, out, count);
    default:
      return convert_from<double>(in, target, out, count);
  }
}

}  // namespace strata::train
