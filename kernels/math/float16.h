// bf16 and fp16 as bit patterns, one element at a time. Integer arithmetic only, so every compiler,
// instruction set and rounding mode agrees; vector forms in cpu/float16_simd-inl.h give the same
// bits.
#pragma once

#include <bit>
#include <cstdint>

namespace strata::kernels {

/// Widens exactly; a NaN keeps its payload.
constexpr float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

/// Rounds to nearest, ties to even. A NaN becomes quiet and keeps its upper payload.
constexpr std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

/// Rounds a master to a parameter: to nearest, ties away from zero, so that the master's other 16
/// bits say by how much it was rounded. A NaN becomes that of f32_to_bf16.
constexpr std::uint16_t master_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + 0x8000) >> 16);
}

/// Returns what master_to_bf16 rounded away, in units of the master's last place: parameter and
/// remainder together are the master, in 32 bits. 0 for a NaN, which keeps its upper half.
constexpr std::int16_t master_remainder(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0;
  return static_cast<std::int16_t>(bits);
}

/// Returns the master of a parameter and its remainder.
constexpr float master_from_parts(std::uint16_t parameter, std::int16_t remainder) {
  return std::bit_cast<float>((std::uint32_t{parameter} << 16) +
                              static_cast<std::uint32_t>(remainder));
}

/// Rounds to a neighbour: away from zero with the probability (low 16 bits of `value`) / 65536, as
/// `random` is uniform in [0, 65536). A NaN becomes that of f32_to_bf16.
constexpr std::uint16_t f32_to_bf16_stochastic(float value, std::uint32_t random) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>((bits >> 16) | 0x40);
  return static_cast<std::uint16_t>((bits + random) >> 16);
}

/// Widens exactly; a NaN keeps its payload.
constexpr float f16_to_f32(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000u} << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1F;
  const std::uint32_t mantissa = half & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000 | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

/// Rounds as f32_to_bf16 does, NaN too; numbers from 65520 on become infinity.
constexpr std::uint16_t f32_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  std::uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000)
    magnitude = 0x7E00 | ((magnitude >> 13) & 0x3FF);
  else if (magnitude >= 0x47800000)  // 65536 and up
    magnitude = 0x7C00;
  else if (magnitude >= 0x38800000)  // 2^-14, the smallest normal number
    magnitude = (magnitude - 0x38000000 + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
  else if (magnitude >= 0x33000000) {  // 2^-25, half of the smallest subnormal number
    const std::uint32_t mantissa = (magnitude & 0x7FFFFF) | 0x800000;
    const std::uint32_t shift = 126 - (magnitude >> 23);
    const std::uint32_t odd = (mantissa >> shift) & 1;
    magnitude = (mantissa + (1u << (shift - 1)) - 1 + odd) >> shift;
  } else {
    magnitude = 0;
  }
  return static_cast<std::uint16_t>(sign | magnitude);
}

}  // namespace strata::kernels
