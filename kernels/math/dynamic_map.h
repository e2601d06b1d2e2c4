// The dynamic 8-bit number formats of Dettmers, Lewis, Shleifer and Zettlemoyer, "8-bit Optimizers
// via Block-wise Quantization" (arXiv 2110.02861), section 2: magnitudes from 10^-7 to 1 in seven
// decades, each with twice as many numbers as the one below, and 0 and 1. The n numbers of decade d
// are 10^d * (0.1 + 0.9 * (k + 0.5) / n), k < n. Signed formats have n = 1 ... 64, unsigned ones 2
// ... 128.
//
// They are computed in fp32 with every operation rounded by itself, so that vectors, the device and
// this header agree bit for bit: magnitude number t is t * slope + offset, with slope and offset of
// its stage (zero, a decade, one), within a relative 1e-6 of the numbers above.
#pragma once

#include <cstdint>

#include "kernels/math/host_device.h"

namespace strata::kernels {

struct DynamicMap {
  static constexpr int kStages = 9;  ///< zero, seven decades, one
  static constexpr int kRoom = 16;   ///< lanes of the largest vector that looks them up

  /// A magnitude y is in the last stage whose `above` it exceeds, or in stage 0. Its number is base
  /// + k; k is the whole part of y * scale - shift, but at least 0 and at most `most`.
  float above[kRoom], scale[kRoom], shift[kRoom];
  std::int32_t base[kRoom], most[kRoom];
  /// Number t of a stage stands for t * slope + offset.
  float slope[kRoom], offset[kRoom];

  static constexpr DynamicMap make(bool is_signed) {
    constexpr double kDecades[] = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1};
    DynamicMap map{};
    double last = 0;  // the largest magnitude of the stage below
    map.base[0] = is_signed ? 0 : 1;
    for (int s = 1; s <= 7; ++s) {
      const std::int32_t count = is_signed ? 1 << (s - 1) : 1 << s;
      const double top = kDecades[s - 1], step = 0.9 * top / count;
      const double first = 0.1 * top + 0.5 * step;
      map.above[s] = static_cast<float>((last + first) / 2);
      map.scale[s] = static_cast<float>(1 / step);
      map.shift[s] = static_cast<float>(first / step - 0.5);
      map.most[s] = count - 1;
      map.base[s] = count;
      map.slope[s] = static_cast<float>(step);
      map.offset[s] = static_cast<float>(first - count * step);
      last = first + (count - 1) * step;
    }
    map.above[8] = static_cast<float>((last + 1) / 2);
    map.base[8] = is_signed ? 128 : 256;
    map.offset[8] = 1;
    // A second moment above zero must not become zero: the first would be divided by eps.
    if (!is_signed) map.above[1] = 0;
    return map;
  }
};

/// The number of the magnitude that is nearest to y, which is 0 to 1. A NaN counts as 0.
template <bool kSigned>
STRATA_HOST_DEVICE inline std::int32_t magnitude_number(float y) {
  constexpr DynamicMap map = DynamicMap::make(kSigned);
  float scale = 0, shift = 0;
  std::int32_t base = map.base[0], most = 0;
  STRATA_UNROLL
  for (int s = 1; s < DynamicMap::kStages; ++s)
    if (y > map.above[s]) {
      scale = map.scale[s];
      shift = map.shift[s];
      base = map.base[s];
      most = map.most[s];
    }
  if (!(y > map.above[1])) return base;
  auto k = static_cast<std::int32_t>(y * scale - shift);
  k = k < 0 ? 0 : k;
  return base + (k > most ? most : k);
}

template <bool kSigned>
STRATA_HOST_DEVICE inline float magnitude(std::int32_t number) {
  constexpr DynamicMap map = DynamicMap::make(kSigned);
  float slope = 0, offset = 0;
  STRATA_UNROLL
  for (int s = 1; s < DynamicMap::kStages; ++s)
    if (number >= map.base[s]) {
      slope = map.slope[s];
      offset = map.offset[s];
    }
  return static_cast<float>(number) * slope + offset;
}

/// Code of y, which is -1 to 1: the number of its magnitude, with its sign, modulo 256. No code
/// stands for -1; the least value is -0.993. 0 is the code of 0, so that zero bytes, as gaps
/// between tensors hold in every kind of state, mean 0 here, too.
STRATA_HOST_DEVICE inline std::uint8_t signed_code(float y) {
  const std::int32_t number = magnitude_number<true>(y < 0 ? -y : y);
  return static_cast<std::uint8_t>(y < 0 ? -(number > 127 ? 127 : number) : number);
}
STRATA_HOST_DEVICE inline float signed_value(std::uint8_t code) {
  const std::int32_t number = code > 128 ? code - 256 : code;
  return number < 0 ? -magnitude<true>(-number) : magnitude<true>(number);
}

/// Code of y, which is 0 to 1: only 0 becomes 0.
STRATA_HOST_DEVICE inline std::uint8_t unsigned_code(float y) {
  return static_cast<std::uint8_t>(magnitude_number<false>(y) - 1);
}
STRATA_HOST_DEVICE inline float unsigned_value(std::uint8_t code) {
  return magnitude<false>(code + 1);
}

}  // namespace strata::kernels
