// Implements kernels/ops/attention.h on CUDA: reads the operands, chooses between a library and our
// two sets of kernels, and computes delta of the backward pass.
#include "kernels/ops/attention.h"

#include <algorithm>
#include <initializer_list>

#include "core/check.h"
#include "kernels/cuda/attention.cuh"
#include "kernels/cuda/attention_library.h"
#include "kernels/cuda/cuda_kernels.h"

namespace strata::cuda {
namespace {

using kernels::KernelCall;
using kernels::Tensor;

AttentionShape attention_shape(const KernelCall& call, const Tensor& q, const Tensor& k) {
  AttentionShape shape;
  const std::int64_t sequence = call.attributes.integer("sequence");
  shape.sequence = static_cast<int>(sequence);
  shape.batch = static_cast<int>(q.rows() / sequence);
  shape.heads = static_cast<int>(q.type.shape[1]);
  shape.group = static_cast<int>(q.type.shape[1] / k.type.shape[1]);
  shape.head_size = static_cast<int>(q.type.shape[2]);
  shape.scale = static_cast<float>(call.attributes.real("scale"));
  const double p = call.attributes.real("p", 0);
  if (p == 0) return shape;
  shape.drops = true;
  shape.threshold = kernels::dropout_threshold(p);
  shape.keep_scale = kernels::dropout_scale(p);
  shape.row_blocks = static_cast<std::uint32_t>((sequence + 3) / 4);
  shape.operation_key = call.attributes.integer("key");
  shape.rng = call.inputs.back().row<std::int64_t>();
  return shape;
}

template <typename T>
HeadRows<T> head_rows(const Tensor& tensor) {
  return {reinterpret_cast<T*>(tensor.data), tensor.row_stride()};
}

/// True if in all operands every row of every head is whole, aligned packs of `elements`.
bool heads_fit(int elements, std::initializer_list<const Tensor*> operands) {
  return std::all_of(operands.begin(), operands.end(), [&](const Tensor* t) {
    const std::int64_t bytes = elements * size_of(t->dtype());
    return t->type.shape[2] % elements == 0 && t->row_stride() % elements == 0 &&
           reinterpret_cast<std::uintptr_t>(t->data) % static_cast<std::uintptr_t>(bytes) == 0;
  });
}

/// True if the tensor-core kernels can take these operands.
bool flash_fits(const AttentionShape& shape, std::initializer_list<const Tensor*> operands) {
  const bool halves = size_of((*operands.begin())->dtype()) == 2;
  return halves && shape.head_size >= 32 && heads_fit(8, operands);
}

void check_types(std::initializer_list<const Tensor*> operands) {
  const DType first = (*operands.begin())->dtype();
  for (const Tensor* t : operands)
    STRATA_CHECK(t->dtype() == first, "attention on CUDA needs operands of one type, found",
                 name_of(first), name_of(t->dtype()));
}

constexpr int kDeltaThreads = 256;
constexpr int kDeltaPack = 4;  // elements per lane and step

/// Computes delta, the sum over a row of dO * O. kLanes lanes take one row (n, h) of D elements;
/// rows go in memory order. A row costs 2 D elements read and 4 bytes written: about 1 % of the
/// time of the kernels that follow, where arithmetic bounds those.
template <typename T, int kLanes>
struct Delta {
  static constexpr int kThreads = kDeltaThreads;
  static constexpr int kRows = kThreads / kLanes;

  static STRATA_DEVICE void run(const AttentionBackward<T>& x) {
    const AttentionShape& shape = x.shape;
    const std::int64_t rows = std::int64_t{shape.batch} * shape.sequence * shape.heads;
    const std::int64_t index = std::int64_t{block().x} * kRows + thread() / kLanes;
    const bool there = index < rows;
    const std::int64_t n = there ? index / shape.heads : 0;
    const int head = there ? static_cast<int>(index - n * shape.heads) : 0;
    const T* dout = x.dout.head(n, head, shape.head_size);
    const T* o = x.o.head(n, head, shape.head_size);
    float sum = 0;
    for (int d = thread() % kLanes * kDeltaPack; d < shape.head_size; d += kLanes * kDeltaPack) {
      const Elements left = read(dout, d, shape), right = read(o, d, shape);
#pragma unroll
      for (int i = 0; i < kDeltaPack; ++i)
        sum = fmaf(to_float(left.v[i]), to_float(right.v[i]), sum);
    }
#pragma unroll
    for (int mask = kLanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    const int sample = static_cast<int>(n / shape.sequence);
    if (there && thread() % kLanes == 0)
      x.delta.head(sample, head, shape.sequence)[n - std::int64_t{sample} * shape.sequence] = sum;
  }

  using Elements = Pack<T, kDeltaPack>;
  static STRATA_DEVICE Elements read(const T* row, int d, const AttentionShape& shape) {
    if (shape.packs) return load<kDeltaPack>(row + d);
    Elements pack{};
#pragma unroll
    for (int i = 0; i < kDeltaPack; ++i)
      if (d + i < shape.head_size) pack.v[i] = row[d + i];
    return pack;
  }
};

template <typename T, int kLanes>
void launch_delta(kernels::Stream& stream, const AttentionBackward<T>& call) {
  using Body = Delta<T, kLanes>;
  const std::int64_t rows = std::int64_t{call.shape.batch} * call.shape.sequence * call.shape.heads;
  launch<Body>(stream,
               {{static_cast<std::uint32_t>((rows + Body::kRows - 1) / Body::kRows), 1, 1}, 0},
               call);
}

template <typename T>
void sum_delta(kernels::Stream& stream, const AttentionBackward<T>& call) {
  if (call.shape.head_size <= 64)
    launch_delta<T, 16>(stream, call);
  else
    launch_delta<T, 32>(stream, call);
}

/// The bytes of keys and values that the heads that run together may have, so that they stay in
/// the L2 cache: well below its 40 MiB (sm_80) or 50 MiB (sm_90).
constexpr std::int64_t kTogetherBytes = std::int64_t{16} << 20;

}  // namespace

TileOrder tile_order(const AttentionShape& shape, int rows_per_tile, int heads, int unit,
                     std::int64_t bytes) {
  TileOrder order;
  order.tiles = static_cast<std::uint32_t>((shape.sequence + rows_per_tile - 1) / rows_per_tile);
  order.heads = static_cast<std::uint32_t>(heads);
  order.all = static_cast<std::uint32_t>(heads * shape.batch);
  const std::int64_t units =
      std::max<std::int64_t>(1, kTogetherBytes / std::max<std::int64_t>(1, bytes));
  order.section_heads = static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(units * unit, 1, std::max<std::int64_t>(1, order.all)));
  return order;
}

void attention(kernels::Stream& stream, const KernelCall& call) {
  AttentionLibrary* library = attention_library(stream);
  if (library != nullptr && library->attention(stream, call)) return;
  const Tensor &q = call.inputs[0], &k = call.inputs[1], &v = call.inputs[2];
  const Tensor &o = call.outputs[0], &lse = call.outputs[1];
  check_types({&q, &k, &v, &o});
  AttentionShape shape = attention_shape(call, q, k);
  shape.packs = heads_fit(4, {&q, &k, &v});
  const bool flash = flash_fits(shape, {&q, &k, &v, &o});
  with_float_type(q.dtype(), [&](auto element) {
    using T = decltype(element);
    const AttentionForward<T> arguments{shape,
                                        {},
                                        head_rows<const T>(q),
                                        head_rows<const T>(k),
                                        head_rows<const T>(v),
                                        head_rows<T>(o),
                                        {reinterpret_cast<float*>(lse.data), lse.row_stride()}};
    if constexpr (sizeof(T) == 2)
      if (flash) return flash_attention(stream, arguments);
    plain_attention(stream, arguments);
  });
}

void attention_backward(kernels::Stream& stream, const KernelCall& call) {
  AttentionLibrary* library = attention_library(stream);
  if (library != nullptr && library->attention_backward(stream, call)) return;
  const Tensor &dout = call.inputs[0], &q = call.inputs[1], &k = call.inputs[2],
               &v = call.inputs[3], &o = call.inputs[4], &lse = call.inputs[5];
  const Tensor &dq = call.outputs[0], &dk = call.outputs[1], &dv = call.outputs[2];
  check_types({&dout, &q, &k, &v, &o, &dq, &dk, &dv});
  AttentionShape shape = attention_shape(call, q, k);
  shape.packs = heads_fit(4, {&dout, &q, &k, &v, &o});
  const bool flash = flash_fits(shape, {&dout, &q, &k, &v, &o, &dq, &dk, &dv});
  const std::int64_t numbers = std::int64_t{shape.heads} * shape.sequence;
  STRATA_CHECK(call.workspace.size() >=
               static_cast<std::size_t>(shape.batch * numbers) * sizeof(float));
  with_float_type(q.dtype(), [&](auto element) {
    using T = decltype(element);
    const AttentionBackward<T> arguments{
        shape,
        {},
        head_rows<const T>(dout),
        head_rows<const T>(q),
        head_rows<const T>(k),
        head_rows<const T>(v),
        head_rows<const T>(o),
        head_rows<T>(dq),
        head_rows<T>(dk),
        head_rows<T>(dv),
        {reinterpret_cast<const float*>(lse.data), lse.row_stride()},
        {reinterpret_cast<float*>(call.workspace.data()), numbers}};
    sum_delta(stream, arguments);
    if constexpr (sizeof(T) == 2)
      if (flash) return flash_attention_backward(stream, arguments);
    plain_attention_keys(stream, arguments);
    plain_attention_queries(stream, arguments);
  });
}

}  // namespace strata::cuda
