#include "kernels/cpu/softmax.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/softmax.cpp"
#include "hwy/foreach_target.h"
#include "kernels/cpu/simd_targets.h"
// The rest comes after foreach_target.h, which includes this file again for every target.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/cpu/float16_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

constexpr std::int64_t kPartialSums = 16;
using Lanes16 = hn::CappedTag<float, kPartialSums>;
constexpr std::int64_t kWidth = static_cast<std::int64_t>(hn::MaxLanes(Lanes16()));
constexpr std::int64_t kParts = kPartialSums / kWidth;

/// Returns the largest value. A NaN may get lost here; its exponential brings it back into the sum.
float largest_of(const float* values, std::int64_t count) {
  const Lanes16 d;
  auto largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) largest = hn::Max(largest, hn::LoadU(d, values + i));
  float result = hn::GetLane(hn::MaxOfLanes(d, largest));
  for (; i < count; ++i) result = std::max(result, values[i]);
  return result;
}

/// Exponentiates the first `count` of `values`, at most sixteen, and adds them to `sums` by lanes.
void exponentiate_block(float* values, float largest, std::int64_t count, float* sums) {
  const Lanes16 d;
  HWY_ALIGN float block[kPartialSums];
  float* work = count == kPartialSums ? values : block;
  if (work == block) {
    std::fill(block, block + kPartialSums, -std::numeric_limits<float>::infinity());
    std::copy(values, values + count, block);
  }
  for (std::int64_t part = 0; part < kParts; ++part) {
    float* at = work + part * kWidth;
    const auto x = hn::Sub(hn::LoadU(d, at), hn::Set(d, largest));
    const auto e = hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(d, x));  // Exp(NaN) is 0
    hn::StoreU(e, d, at);
    float* sum = sums + part * kWidth;
    hn::StoreU(hn::Add(hn::LoadU(d, sum), e), d, sum);
  }
  if (work == block) std::copy(block, block + count, values);
}

SoftmaxPiece exponentiate_row(float* values, std::int64_t count, std::int64_t valid) {
  std::fill(values + valid, values + count, 0.0F);
  SoftmaxPiece piece{largest_of(values, valid), 0.0F};
  if (valid == 0) return piece;
  HWY_ALIGN std::array<float, kPartialSums> sums{};
  std::int64_t i = 0;
  for (; i + kPartialSums <= valid; i += kPartialSums)
    exponentiate_block(values + i, piece.largest, kPartialSums, sums.data());
  if (i < valid) exponentiate_block(values + i, piece.largest, valid - i, sums.data());
  for (std::size_t width = sums.size() / 2; width > 0; width /= 2)
    for (std::size_t lane = 0; lane < width; ++lane) sums[lane] += sums[lane + width];
  piece.sum = sums[0];
  return piece;
}

void scale_loop(float* values, float factor, std::int64_t count) {
  for_each_vector(count, [&](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, values + i), hn::Set(d, factor)), d, values + i);
  });
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {

HWY_EXPORT(exponentiate_row);
HWY_EXPORT(scale_loop);

SoftmaxPiece exponentiate(float* values, std::int64_t count, std::int64_t valid) {
  return HWY_DYNAMIC_DISPATCH(exponentiate_row)(values, count, valid);
}

void scale_row(float* values, float factor, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(scale_loop)(values, factor, count);
}

}  // namespace strata::kernels
#endif
