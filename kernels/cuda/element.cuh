// Elements of tensors in registers: storage types, conversions, and with_float_type, which turns a
// DType into a C++ type.
#pragma once

#include <bit>
#include <type_traits>

#include "core/dtype.h"
#include "core/error.h"
#include "kernels/cuda/device.cuh"
#include "kernels/math/float16.h"

namespace strata::cuda {

struct Bf16 {
  std::uint16_t bits;
};
struct Half {
  std::uint16_t bits;
};

STRATA_DEVICE float to_float(float x) { return x; }
STRATA_DEVICE float to_float(Bf16 x) { return kernels::bf16_to_f32(x.bits); }
STRATA_DEVICE float to_float(Half x) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
  return value;
#else
  return kernels::f16_to_f32(x.bits);
#endif
}

/// Rounds to nearest even, with the bits of kernels/math/float16.h except the payload of a NaN.
template <typename T>
STRATA_DEVICE T from_float(float x);
template <>
STRATA_DEVICE float from_float<float>(float x) {
  return x;
}
template <>
STRATA_DEVICE Bf16 from_float<Bf16>(float x) {
#if defined(__CUDA_ARCH__)
  std::uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return {bits};
#else
  return {kernels::f32_to_bf16(x)};
#endif
}
template <>
STRATA_DEVICE Half from_float<Half>(float x) {
#if defined(__CUDA_ARCH__)
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return {bits};
#else
  return {kernels::f32_to_f16(x)};
#endif
}

/// Rounds two numbers to 16 bits, into one register with `low` in its lower half.
template <typename T>
STRATA_DEVICE std::uint32_t pair_from_floats(float low, float high) {
#if defined(__CUDA_ARCH__)
  std::uint32_t bits;
  if constexpr (std::is_same_v<T, Bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
  return bits;
#else
  return from_float<T>(low).bits | std::uint32_t{from_float<T>(high).bits} << 16;
#endif
}

/// Converts a pack to fp32.
template <int N, typename T>
STRATA_DEVICE void to_floats(float (&to)[N], const Pack<T, N>& pack) {
  if constexpr (std::is_same_v<T, Bf16> && N % 2 == 0) {
    // Takes one instruction per element; the compiler would first cut every word in two.
    struct Words {
      std::uint32_t v[N / 2];
    };
    const auto words = std::bit_cast<Words>(pack);
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      to[i] = std::bit_cast<float>(words.v[i / 2] << 16);
      to[i + 1] = std::bit_cast<float>(words.v[i / 2] & 0xFFFF0000u);
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) to[i] = to_float(pack.v[i]);
  }
}

/// Converts to a pack, each element as from_float does.
template <typename T, int N>
STRATA_DEVICE Pack<T, N> to_pack(const float (&from)[N]) {
  if constexpr (sizeof(T) == 2 && N % 2 == 0) {
    struct Words {
      std::uint32_t v[N / 2];
    } words;
#pragma unroll
    for (int i = 0; i < N; i += 2) words.v[i / 2] = pair_from_floats<T>(from[i], from[i + 1]);
    return std::bit_cast<Pack<T, N>>(words);
  } else {
    Pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < N; ++i) pack.v[i] = from_float<T>(from[i]);
    return pack;
  }
}

/// Host: calls body(T{}) with the element type of a float tensor.
template <typename Body>
void with_float_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f32:
      return body(float{});
    case DType::bf16:
      return body(Bf16{});
    case DType::f16:
      return body(Half{});
    default:
      throw InternalError("a kernel for floats was given " + std::string(name_of(dtype)));
  }
}

}  // namespace strata::cuda
