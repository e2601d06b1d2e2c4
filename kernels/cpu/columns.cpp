#include "kernels/cpu/columns.h"

#include <algorithm>
#include <array>

#include "core/check.h"
#include "kernels/cpu/float_rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/columns.cpp"
#include "hwy/foreach_target.h"
#include "kernels/cpu/simd_targets.h"
// The rest comes after foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"
#include "kernels/cpu/float16_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

void add_row_loop(const float* from, float* to, std::int64_t count) {
  for_each_vector(count, [&](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
  });
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {

HWY_EXPORT(add_row_loop);

void add_row(const float* from, float* to, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(add_row_loop)(from, to, count);
}

void sum_columns(const Tensor& matrix, std::int64_t first, std::int64_t count, float* sums) {
  STRATA_CHECK(count <= kColumnBlock, count);
  constexpr std::int64_t kRows = 32;
  std::array<double, kColumnBlock> totals{};
  float widened[kColumnBlock];
  for (std::int64_t begin = 0; begin < matrix.rows(); begin += kRows) {
    std::fill_n(sums, count, 0.0F);
    const std::int64_t end = std::min(matrix.rows(), begin + kRows);
    for (std::int64_t row = begin; row < end; ++row)
      add_row(floats_of(matrix, row, first, count, widened), sums, count);
    for (std::int64_t i = 0; i < count; ++i) totals[static_cast<std::size_t>(i)] += sums[i];
  }
  for (std::int64_t i = 0; i < count; ++i)
    sums[i] = static_cast<float>(totals[static_cast<std::size_t>(i)]);
}

}  // namespace strata::kernels
#endif
