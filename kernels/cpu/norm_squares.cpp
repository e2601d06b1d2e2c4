#include "kernels/ops/norm_squares.h"

#include <cstring>

#include "core/check.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/simd_targets.h"
#include "kernels/cpu/step_kernels.h"
#include "kernels/ops/step_state.h"
#include "kernels/ops/wide_sum.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm_squares.cpp"
#include "hwy/foreach_target.h"
// The rest comes after foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

/// Returns the sum of squares of one whole cell. Four vectors at a time (of at most 8 doubles) hide
/// the latency of additions; what each of the 32 lanes adds does not depend on their width.
double cell_squares(const float* cell) {
  const hn::CappedTag<double, kNormLanes / 4> d;
  const hn::Rebind<float, decltype(d)> df;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  alignas(64) double lanes[kNormLanes];
  for (std::int64_t lane = 0; lane < kNormLanes; lane += 4 * n) {
    auto sum0 = hn::Zero(d);
    auto sum1 = hn::Zero(d);
    auto sum2 = hn::Zero(d);
    auto sum3 = hn::Zero(d);
    for (std::int64_t i = lane; i < kNormCell; i += kNormLanes) {
      const auto x0 = hn::PromoteTo(d, hn::LoadU(df, cell + i));
      const auto x1 = hn::PromoteTo(d, hn::LoadU(df, cell + i + n));
      const auto x2 = hn::PromoteTo(d, hn::LoadU(df, cell + i + 2 * n));
      const auto x3 = hn::PromoteTo(d, hn::LoadU(df, cell + i + 3 * n));
      // The product is exact, so fused or not makes no difference.
      sum0 = hn::MulAdd(x0, x0, sum0);
      sum1 = hn::MulAdd(x1, x1, sum1);
      sum2 = hn::MulAdd(x2, x2, sum2);
      sum3 = hn::MulAdd(x3, x3, sum3);
    }
    hn::Store(sum0, d, lanes + lane);
    hn::Store(sum1, d, lanes + lane + n);
    hn::Store(sum2, d, lanes + lane + 2 * n);
    hn::Store(sum3, d, lanes + lane + 3 * n);
  }
  for (int width = kNormLanes / 2; width >= 1; width /= 2)
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  return lanes[0];
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
namespace {
HWY_EXPORT(cell_squares);

/// Adds the cells of [begin, end) to `word`; `begin` is on a cell border.
void add_cells(const Tensor& gradient, std::int64_t begin, std::int64_t end, std::int64_t* word) {
  const WideDigits digits(word, AgreedWord::kDigits);
  for (std::int64_t at = begin; at < end; at += kNormCell) {
    double squares;
    if (gradient.dtype() == DType::f32 && end - at >= kNormCell) {
      squares = HWY_DYNAMIC_DISPATCH(cell_squares)(gradient.row<const float>() + at);
    } else {
      float cell[kNormCell] = {};
      convert_range(gradient.dtype(), element(gradient, 0, at), DType::f32,
                    reinterpret_cast<std::byte*>(cell), std::min(kNormCell, end - at));
      squares = HWY_DYNAMIC_DISPATCH(cell_squares)(cell);
    }
    if (!wide_add(digits, squares)) ++word[AgreedWord::kNonFinite];
  }
}
}  // namespace

void norm_squares_kernel(Stream& stream, const KernelCall& call) {
  constexpr std::int64_t kWords = AgreedWord::kWords;
  constexpr std::size_t kWordBytes = kWords * sizeof(std::int64_t);
  ThreadPool& pool = cpu(stream).pool();
  const Tensor& gradient = call.inputs[1];
  auto* word = call.outputs[0].row<std::int64_t>();
  auto* parts = reinterpret_cast<std::int64_t*>(call.workspace.data());
  const auto part_bytes = static_cast<std::size_t>(pool.threads()) * kWordBytes;
  STRATA_CHECK(call.workspace.size() >= part_bytes, "workspace", call.workspace.size());
  std::memset(parts, 0, part_bytes);

  for_each_range(&pool, gradient.elements(), kTaskElements,
                 [&](std::int64_t begin, std::int64_t end, int worker) {
                   add_cells(gradient, begin, end, parts + worker * kWords);
                 });

  if (call.attributes.integer("first", 0) != 0)
    std::memset(word, 0, kWordBytes);
  else if (call.inputs[0].data != call.outputs[0].data)
    std::memcpy(word, call.inputs[0].data, kWordBytes);
  for (int worker = 0; worker < pool.threads(); ++worker)
    for (std::int64_t i = 0; i < kWords; ++i) word[i] += parts[worker * kWords + i];
}

}  // namespace strata::kernels
#endif
