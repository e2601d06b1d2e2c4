#include "kernels/ops/rope.h"

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/float_rows.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/cpu/ranges.h"
#include "kernels/math/sine_cosine.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd_targets.h"

#include "kernels/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

/// Rotates one head; `sign` is 1, or -1 for the inverse.
void rope_head(const float* x, const float* table, float* y, std::int64_t half, float sign) {
  const float *high = x + half, *sines = table + half;
  float* y_high = y + half;
  for_lanes(half, [&](auto lanes) HWY_ATTR {
    const V a = lanes.load(x), b = lanes.load(high), cosine = lanes.load(table);
    const V sine = hn::Mul(lanes.load(sines), all(sign));
    lanes.store(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), y);
    lanes.store(hn::MulAdd(a, sine, hn::Mul(b, cosine)), y_high);
  });
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
HWY_EXPORT(rope_head);

namespace {
constexpr std::int64_t kRowsPerTask = 8;
constexpr std::int64_t kMostHeadSize = 1024;
}  // namespace

void rope_table_kernel(Stream& stream, const KernelCall& call) {
  const Tensor& table = call.outputs[0];
  const std::int64_t half = table.cols() / 2;
  const std::span<double> frequencies(reinterpret_cast<double*>(call.workspace.data()),
                                      static_cast<std::size_t>(half));
  const double factor = rope_frequencies(call.attributes, frequencies);
  cpu(stream).pool().parallel_for(table.rows(), [&](std::int64_t position, int) {
    float* row = table.row<float>(position);
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * frequencies[static_cast<std::size_t>(i)];
      const SineCosine of = sine_cosine(angle);
      row[i] = static_cast<float>(of.cosine * factor);
      row[half + i] = static_cast<float>(of.sine * factor);
    }
  });
}

void rope_kernel(Stream& stream, const KernelCall& call) {
  const Tensor &x = call.inputs[0], &table = call.inputs[1], &y = call.outputs[0];
  const std::int64_t heads = x.type.shape[1], head_size = x.type.shape[2];
  STRATA_CHECK(head_size <= kMostHeadSize);
  const std::int64_t sequence = call.attributes.integer("sequence");
  const float sign = call.attributes.integer("inverse", 0) != 0 ? -1.0f : 1.0f;
  for_each_range(&cpu(stream).pool(), x.rows(), kRowsPerTask,
                 [&](std::int64_t begin, std::int64_t end) {
                   alignas(64) float from_buffer[kMostHeadSize], to_buffer[kMostHeadSize];
                   for (std::int64_t n = begin; n < end; ++n)
                     for (std::int64_t h = 0; h < heads; ++h) {
                       const float* from = floats_of(x, n, h * head_size, head_size, from_buffer);
                       float* to = floats_for(y, n, h * head_size, to_buffer);
                       HWY_DYNAMIC_DISPATCH(rope_head)
                       (from, table.row<float>(n % sequence), to, head_size / 2, sign);
                       put_floats(to, y, n, h * head_size, head_size);
                     }
                 });
}

}  // namespace strata::kernels
#endif
