#include <algorithm>

#include "core/round_up.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/cpu/norm_vectors.h"
#include "kernels/cpu/ranges.h"
#include "kernels/ops/norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm_backward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/lanes-inl.h"
#include "kernels/cpu/simd_targets.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

/// Computes dx of one vector (plus dsum if that is not null; dx may be dy), and adds the vector's
/// part to dweight and, if that is not null, dbias.
void norm_backward_row(const float* dy, const float* x, const float* weight, const float* dsum,
                       float* dx, std::int64_t n, bool rms, const float* stats, float* dweight,
                       float* dbias) {
  const V center = all(stats[0]), scale = all(stats[1]);
  Sum16 sum, product;
  for_lanes(n, [&](auto lanes) HWY_ATTR {
    const V d = lanes.load(dy);
    const V normal = hn::Mul(hn::Sub(lanes.load(x), center), scale);
    const V g = hn::Mul(d, lanes.load(weight));
    sum.add(lanes, g);
    product.add_product(lanes, g, normal);
    lanes.store(hn::MulAdd(d, normal, lanes.load(dweight)), dweight);
    if (dbias != nullptr) lanes.store(hn::Add(d, lanes.load(dbias)), dbias);
  });
  const auto count = static_cast<float>(n);
  const V mean = all(rms ? 0.0f : sum.total() / count), slope = all(product.total() / count);
  for_lanes(n, [&](auto lanes) HWY_ATTR {
    const V normal = hn::Mul(hn::Sub(lanes.load(x), center), scale);
    const V g = hn::Mul(lanes.load(dy), lanes.load(weight));
    const V inner = hn::NegMulAdd(normal, slope, hn::Sub(g, mean));
    lanes.store(
        dsum == nullptr ? hn::Mul(inner, scale) : hn::MulAdd(inner, scale, lanes.load(dsum)), dx);
  });
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
HWY_EXPORT(norm_backward_row);

namespace {

/// Adds the partial sums of chunks in fp64, in the order of chunks.
void add_chunks(ThreadPool& pool, const float* partial, std::int64_t chunks, std::int64_t stride,
                const Tensor& to) {
  constexpr std::int64_t kColumns = 128;
  for_each_range(&pool, to.elements(), kColumns, [&](std::int64_t column, std::int64_t end) {
    const std::int64_t n = end - column;
    double sum[kColumns] = {};
    float rounded[kColumns];
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk)
      for (std::int64_t i = 0; i < n; ++i)
        sum[i] += static_cast<double>(partial[chunk * stride + column + i]);
    for (std::int64_t i = 0; i < n; ++i) rounded[i] = static_cast<float>(sum[i]);
    store_floats(rounded, element(to, 0, column), to.dtype(), n);
  });
}

}  // namespace

void norm_backward_kernel(Stream& stream, const KernelCall& call) {
  ThreadPool& pool = cpu(stream).pool();
  const Tensor &dy = call.inputs[0], &x = call.inputs[1], &stats = call.inputs[3];
  const Tensor* dsum = call.inputs.size() == 5 ? &call.inputs[4] : nullptr;
  const Tensor& dx = call.outputs[0];
  const bool rms = call.attributes.integer("rms") != 0;
  const bool has_bias = call.attributes.integer("bias") != 0;

  const Vectors vectors(x);
  const std::int64_t columns = vectors.columns, per_chunk = norm_chunk_vectors(columns);
  const std::int64_t chunks = divide_up(vectors.count, per_chunk);
  Rows rows(call, columns);
  const float* weight = floats_of(call.inputs[2], 0, 0, columns, rows.take(1));
  float* partial = rows.take(2 * chunks);  // dweight, dbias of each chunk
  float* buffers = rows.take(4 * pool.threads());

  pool.parallel_for(chunks, [&](std::int64_t chunk, int worker) {
    float* buffer = buffers + 4 * worker * columns;
    float* dweight = partial + 2 * chunk * columns;
    float* dbias = has_bias ? dweight + columns : nullptr;
    std::fill_n(dweight, 2 * columns, 0.0f);
    const std::int64_t last = std::min(vectors.count, (chunk + 1) * per_chunk);
    for (std::int64_t i = chunk * per_chunk; i < last; ++i) {
      const float* d = vectors.load(dy, i, buffer);
      const float* v = vectors.load(x, i, buffer + columns);
      const float* s = dsum == nullptr ? nullptr : vectors.load(*dsum, i, buffer + 2 * columns);
      float* to = vectors.room(dx, i, buffer + 3 * columns);
      HWY_DYNAMIC_DISPATCH(norm_backward_row)
      (d, v, weight, s, to, columns, rms, vectors.stats(stats, i), dweight, dbias);
      vectors.put(to, dx, i);
    }
  });
  add_chunks(pool, partial, chunks, 2 * columns, call.outputs[1]);
  if (has_bias) add_chunks(pool, partial + columns, chunks, 2 * columns, call.outputs[2]);
}

}  // namespace strata::kernels
#endif
