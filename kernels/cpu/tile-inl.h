// Multiplies small fp32 matrices in the first-level cache, one register tile at a time. Each
// element of a product is one chain of fused multiply-adds in the order of the inner index, so the
// shape of the register tile, which differs between instruction sets, does not show in the bits.

#if defined(STRATA_KERNELS_CPU_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_TILE_INL_H_
#undef STRATA_KERNELS_CPU_TILE_INL_H_
#else
#define STRATA_KERNELS_CPU_TILE_INL_H_
#endif

#include <algorithm>

#include "kernels/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {

// A register tile is two vectors wide and has as many rows as hide the latency of two multiply-adds
// per cycle and leave registers (of 32 with AVX-512, else 16) for the operands.
constexpr std::int64_t kTileColumns = 2 * kLanes;
constexpr std::int64_t kTileRows = kLanes >= 16 ? 8 : kLanes >= 4 ? 4 : 2;
static_assert(kTileColumns % kTileRows == 0);

/// The left factor A: element (i, k) is at data[i * row_step + k * inner_step].
struct LeftFactor {
  const float* data;
  std::int64_t row_step;
  std::int64_t inner_step;
};

/// Computes C[kTileRows, kTileColumns] = A B, or adds it to C if `accumulate`; B is [inner,
/// kTileColumns]. `b_stride` and `c_stride` are between rows.
HWY_NOINLINE HWY_MAYBE_UNUSED inline void multiply_tile(std::int64_t inner, LeftFactor a,
                                                        const float* b, std::int64_t b_stride,
                                                        float* c, std::int64_t c_stride,
                                                        bool accumulate) {
  constexpr auto kWidth = static_cast<std::int64_t>(kLanes);
  const F f;
  V left[kTileRows], right[kTileRows];
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < kTileRows; ++i) left[i] = right[i] = hn::Zero(f);
  if (accumulate) {
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      left[i] = hn::LoadU(f, c + i * c_stride);
      right[i] = hn::LoadU(f, c + i * c_stride + kWidth);
    }
  }
  for (std::int64_t k = 0; k < inner; ++k) {
    const V b_left = hn::LoadU(f, b), b_right = hn::LoadU(f, b + kWidth);
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      const V factor = all(a.data[i * a.row_step]);
      left[i] = hn::MulAdd(factor, b_left, left[i]);
      right[i] = hn::MulAdd(factor, b_right, right[i]);
    }
    a.data += a.inner_step;
    b += b_stride;
  }
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < kTileRows; ++i) {
    hn::StoreU(left[i], f, c + i * c_stride);
    hn::StoreU(right[i], f, c + i * c_stride + kWidth);
  }
}

/// Sets to[column][row] = from[row][column]; `rows` and `columns` are multiples of 4.
HWY_NOINLINE HWY_MAYBE_UNUSED inline void transpose(const float* from, std::int64_t rows,
                                                    std::int64_t columns, std::int64_t from_stride,
                                                    float* to, std::int64_t to_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
#else
  const hn::CappedTag<float, 4> f;
  const hn::Repartition<double, decltype(f)> pair;
  for (std::int64_t r = 0; r < rows; r += 4)
    for (std::int64_t c = 0; c < columns; c += 4) {
      const float* at = from + r * from_stride + c;
      const auto r0 = hn::LoadU(f, at), r1 = hn::LoadU(f, at + from_stride);
      const auto r2 = hn::LoadU(f, at + 2 * from_stride), r3 = hn::LoadU(f, at + 3 * from_stride);
      const auto low01 = hn::BitCast(pair, hn::InterleaveLower(f, r0, r1));
      const auto low23 = hn::BitCast(pair, hn::InterleaveLower(f, r2, r3));
      const auto high01 = hn::BitCast(pair, hn::InterleaveUpper(f, r0, r1));
      const auto high23 = hn::BitCast(pair, hn::InterleaveUpper(f, r2, r3));
      float* out = to + c * to_stride + r;
      hn::StoreU(hn::BitCast(f, hn::InterleaveLower(pair, low01, low23)), f, out);
      hn::StoreU(hn::BitCast(f, hn::InterleaveUpper(pair, low01, low23)), f, out + to_stride);
      hn::StoreU(hn::BitCast(f, hn::InterleaveLower(pair, high01, high23)), f, out + 2 * to_stride);
      hn::StoreU(hn::BitCast(f, hn::InterleaveUpper(pair, high01, high23)), f, out + 3 * to_stride);
    }
#endif
}

}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
