#include "kernels/ops/norm.h"

#include <algorithm>
#include <cmath>

#include "core/round_up.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/dropout_row.h"
#include "kernels/cpu/float_rows.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/cpu/norm_vectors.h"
#include "kernels/cpu/row_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/simd_targets.h"

#include "kernels/cpu/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

/// Sets stats[0] to the mean (zero for RMS), stats[1] to 1 / sqrt(variance + eps), and y to the
/// normalized x times weight, plus bias if that is not null.
void norm_row(const float* x, const float* weight, const float* bias, float* y, std::int64_t n,
              double eps, bool rms, float* stats) {
  float mean = 0;
  if (!rms) {
    Sum16 sum;
    for_lanes(n, [&](auto lanes) HWY_ATTR { sum.add(lanes, lanes.load(x)); });
    mean = static_cast<float>(static_cast<double>(sum.total()) / static_cast<double>(n));
  }
  const V center = all(mean);
  Sum16 squares;
  for_lanes(n, [&](auto lanes) HWY_ATTR {
    const V v = hn::Sub(lanes.load(x), center);
    squares.add_product(lanes, v, v);
  });
  const double variance = static_cast<double>(squares.total()) / static_cast<double>(n);
  const auto scale = static_cast<float>(1.0 / std::sqrt(variance + eps));
  stats[0] = mean;
  stats[1] = scale;
  for_lanes(n, [&](auto lanes) HWY_ATTR {
    const V normal = hn::Mul(hn::Sub(lanes.load(x), center), all(scale));
    const V w = lanes.load(weight);
    lanes.store(bias == nullptr ? hn::Mul(normal, w) : hn::MulAdd(normal, w, lanes.load(bias)), y);
  });
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
HWY_EXPORT(norm_row);

namespace {

constexpr std::int64_t kElementsPerTask = 16384;

/// Calls body(vector, worker) for all vectors, in tasks cut by shape.
template <class Body>
void for_each_vector(ThreadPool& pool, const Vectors& vectors, const Body& body) {
  const std::int64_t per_task = std::max<std::int64_t>(1, kElementsPerTask / vectors.columns);
  pool.parallel_for(divide_up(vectors.count, per_task), [&](std::int64_t task, int worker) {
    const std::int64_t last = std::min(vectors.count, (task + 1) * per_task);
    for (std::int64_t i = task * per_task; i < last; ++i) body(i, worker);
  });
}

/// The part that norm and residual_norm share: parameters as fp32, and the norm of one vector.
class NormForward {
 public:
  NormForward(const KernelCall& call, int threads, const Tensor& weight, const Tensor* bias,
              const Tensor& y, const Tensor& stats)
      : vectors_(y), y_(y), stats_(stats), eps_(call.attributes.real("eps")) {
    rms_ = call.attributes.integer("rms") != 0;
    Rows rows(call, vectors_.columns);
    weight_ = floats_of(weight, 0, 0, vectors_.columns, rows.take(1));
    float* bias_row = rows.take(1);
    if (bias != nullptr) bias_ = floats_of(*bias, 0, 0, vectors_.columns, bias_row);
    buffers_ = rows.take(2 * threads);
  }
  [[nodiscard]] const Vectors& vectors() const { return vectors_; }
  /// A row of scratch for the input of this worker.
  [[nodiscard]] float* buffer(int worker) const { return buffers_ + 2 * worker * vectors_.columns; }

  void run(const float* x, std::int64_t vector, int worker) const {
    float* y = vectors_.room(y_, vector, buffer(worker) + vectors_.columns);
    HWY_DYNAMIC_DISPATCH(norm_row)
    (x, weight_, bias_, y, vectors_.columns, eps_, rms_, vectors_.stats(stats_, vector));
    vectors_.put(y, y_, vector);
  }

 private:
  Vectors vectors_;
  const Tensor &y_, &stats_;
  double eps_;
  bool rms_;
  const float *weight_, *bias_ = nullptr;
  float* buffers_;
};

}  // namespace

void norm_kernel(Stream& stream, const KernelCall& call) {
  ThreadPool& pool = cpu(stream).pool();
  const Tensor& x = call.inputs[0];
  const Tensor* bias = call.inputs.size() == 3 ? &call.inputs[2] : nullptr;
  const NormForward norm(call, pool.threads(), call.inputs[1], bias, call.outputs[0],
                         call.outputs[1]);
  for_each_vector(pool, norm.vectors(), [&](std::int64_t i, int worker) {
    norm.run(norm.vectors().load(x, i, norm.buffer(worker)), i, worker);
  });
}

void residual_norm_kernel(Stream& stream, const KernelCall& call) {
  ThreadPool& pool = cpu(stream).pool();
  const bool has_bias = call.attributes.integer("bias") != 0;
  const bool drops = call.attributes.real("p", 0) > 0;
  const Tensor& sum = call.outputs[0];
  const NormForward norm(call, pool.threads(), call.inputs[2], has_bias ? &call.inputs[3] : nullptr,
                         call.outputs[1], call.outputs[2]);
  // The sum is first rounded to its type, so that this is residual_add and norm to the bit.
  const DropoutRows dropout =
      drops ? DropoutRows(call.inputs.back(), call.attributes, sum.cols()) : DropoutRows();
  for_each_vector(pool, norm.vectors(), [&](std::int64_t row, int worker) {
    float* to = floats_for(sum, row, 0, norm.buffer(worker));
    for (std::int64_t column = 0; column < sum.cols(); column += kRowPartElements) {
      const std::int64_t n = std::min(kRowPartElements, sum.cols() - column);
      float x_buffer[kRowPartElements], delta_buffer[kRowPartElements];
      const float* x = floats_of(call.inputs[0], row, column, n, x_buffer);
      const float* delta = floats_of(call.inputs[1], row, column, n, delta_buffer);
      if (drops)
        dropout.apply(x, delta, to + column, row, column, n);
      else
        for (std::int64_t i = 0; i < n; ++i) to[column + i] = x[i] + delta[i];
    }
    put_floats(to, sum, row, 0, sum.cols());
    norm.run(floats_of(sum, row, 0, sum.cols(), norm.buffer(worker)), row, worker);
  });
}

}  // namespace strata::kernels
#endif
