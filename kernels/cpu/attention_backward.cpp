#include <algorithm>

#include "kernels/cpu/attention_task.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/layer_kernels.h"
#include "kernels/ops/attention.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_backward.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention_tiles-inl.h"
#include "kernels/cpu/simd_targets.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

/// The scratch of one worker, as attention_backward_scratch_floats() counts it.
struct BackwardScratch {
  float *k, *v, *dk, *dv;                                 // [T rounded up, padded]
  float *q, *q_transposed, *dout, *dout_transposed, *dq;  // one tile of queries
  float *p, *ds;                                          // [kK, kQ]
  float *lse, *delta;                                     // [kQ]

  BackwardScratch(float* at, const AttentionShape& shape) {
    const std::int64_t whole = round_up(shape.sequence, kK) * shape.padded;
    const std::int64_t tile = kQ * shape.padded;
    for (float** part : {&k, &v, &dk, &dv}) *part = at, at += whole;
    for (float** part : {&q, &q_transposed, &dout, &dout_transposed, &dq}) *part = at, at += tile;
    for (float** part : {&p, &ds}) *part = at, at += kK * kQ;
    for (float** part : {&lse, &delta}) *part = at, at += kQ;
  }
};

/// Loads a tile of queries and computes delta[q] = sum of dO * O.
void load_queries(const AttentionBackwardHead& head, const AttentionShape& shape,
                  std::int64_t query, const BackwardScratch& s) {
  load_tile(head.q, shape, query, kQ, s.q);
  transpose(s.q, kQ, shape.padded, shape.padded, s.q_transposed, kQ);
  load_tile(head.dout, shape, query, kQ, s.dout);
  transpose(s.dout, kQ, shape.padded, shape.padded, s.dout_transposed, kQ);
  load_tile(head.o, shape, query, kQ, s.dq);
  for (std::int64_t i = 0; i < kQ; ++i) {
    const float *o = s.dq + i * shape.padded, *dout = s.dout + i * shape.padded;
    Sum16 sum;
    for_lanes(shape.padded, [&](auto lanes) HWY_ATTR {
      sum.add_product(lanes, lanes.load(o), lanes.load(dout));
    });
    s.delta[i] = sum.total();
    s.lse[i] = query + i < shape.sequence ? head.lse[query + i] : 0.0f;
  }
}

/// Turns, for one vector of queries, the scores in `p` into probabilities (after dropout) and the
/// gradients of probabilities in `ds` into gradients of scores.
template <bool kDrops>
void score_gradients(float* p, float* ds, std::int64_t first, std::int64_t last, bool diagonal,
                     std::int64_t column, const AttentionShape& shape, const RandomSource& random,
                     std::uint64_t block, const float* lse_row, const float* delta_row) {
  const F f;
  const V scale = all(shape.scale), keep_scale = all(shape.keep_scale);
  const V lse = hn::LoadU(f, lse_row), delta = hn::LoadU(f, delta_row);
  PhiloxWords words;
  for (std::int64_t row = first; row < last; ++row) {
    if constexpr (kDrops)
      if (row % 4 == 0)
        words = philox_lanes(random, block + static_cast<std::uint64_t>(row / 4), shape.row_blocks);
    V probability = exp_lanes(hn::MulSub(hn::LoadU(f, p + row * kQ), scale, lse));
    if (diagonal) probability = hn::IfThenElseZero(sees(column, row), probability);
    V gradient = hn::LoadU(f, ds + row * kQ);
    V used = probability;
    if constexpr (kDrops) {
      const V32 word = words.word[row % 4];
      gradient = keep_lanes(word, shape.threshold, hn::Mul(gradient, keep_scale));
      used = keep_lanes(word, shape.threshold, hn::Mul(probability, keep_scale));
    }
    hn::StoreU(used, f, p + row * kQ);
    hn::StoreU(hn::Mul(hn::Mul(probability, hn::Sub(gradient, delta)), scale), f, ds + row * kQ);
  }
}

/// Computes probabilities and gradients of scores of one tile, [keys, queries].
void tile_gradients(const AttentionBackwardHead& head, const RandomSource& random,
                    const AttentionShape& shape, const TilePlace& place, const BackwardScratch& s) {
  for (std::int64_t column = 0; column < place.columns; column += kTileColumns) {
    const std::int64_t seen = place.keys_of(column);
    multiply_panel(s.k + place.key * shape.padded, s.q_transposed + column, shape, seen,
                   s.p + column);
    multiply_panel(s.v + place.key * shape.padded, s.dout_transposed + column, shape, seen,
                   s.ds + column);
    const auto run = shape.drops ? score_gradients<true> : score_gradients<false>;
    for (std::int64_t at = column; at < column + kTileColumns; at += kWidth) {
      const std::uint64_t block = head.first_block +
                                  static_cast<std::uint64_t>(place.query + at) * shape.row_blocks +
                                  static_cast<std::uint64_t>(place.key / 4);
      run(s.p + at, s.ds + at, 0, seen, place.diagonal(), at, shape, random, block, s.lse + at,
          s.delta + at);
    }
  }
}

/// Adds P^T dO to dV and dS^T Q to dK for the keys of one tile, and dS K to dQ for its queries.
void multiply_gradients(const AttentionShape& shape, const TilePlace& place,
                        const BackwardScratch& s) {
  const std::int64_t width = shape.padded;
  for (std::int64_t d = 0; d < width; d += kTileColumns) {
    for (std::int64_t row = 0; row < place.keys_of(place.columns - 1); row += kTileRows) {
      const std::int64_t first = place.first_query_of(row), at = (place.key + row) * width + d;
      const std::int64_t from = row * kQ + first, count = place.columns - first;
      multiply_tile(count, {s.p + from, kQ, 1}, s.dout + first * width + d, width, s.dv + at, width,
                    true);
      multiply_tile(count, {s.ds + from, kQ, 1}, s.q + first * width + d, width, s.dk + at, width,
                    true);
    }
    for (std::int64_t i = 0; i < place.columns; i += kTileRows)
      multiply_tile(place.keys_of(i), {s.ds + i, 1, kQ}, s.k + place.key * width + d, width,
                    s.dq + i * width + d, width, place.key > 0);
  }
}

void begin_keys(const AttentionBackwardTask& task, const AttentionShape& shape, float* scratch) {
  const BackwardScratch s(scratch, shape);
  const std::int64_t rows = round_up(shape.sequence, kK);
  load_tile(task.k, shape, 0, rows, s.k);
  load_tile(task.v, shape, 0, rows, s.v);
  std::fill_n(s.dk, rows * shape.padded, 0.0f);
  std::fill_n(s.dv, rows * shape.padded, 0.0f);
}

void run_head(const AttentionBackwardTask& task, const AttentionBackwardHead& head,
              const AttentionShape& shape, float* scratch) {
  const BackwardScratch s(scratch, shape);
  for (std::int64_t query = 0; query < shape.sequence; query += kQ) {
    load_queries(head, shape, query, s);
    for (std::int64_t key = 0; key <= query; key += kK) {
      const TilePlace place(shape, query, key);
      tile_gradients(head, task.random, shape, place, s);
      multiply_gradients(shape, place, s);
    }
    store_tile(s.dq, shape, query, kQ, head.dq);
  }
}

void finish_keys(const AttentionBackwardTask& task, const AttentionShape& shape, float* scratch) {
  const BackwardScratch s(scratch, shape);
  store_tile(s.dk, shape, 0, shape.sequence, task.dk);
  store_tile(s.dv, shape, 0, shape.sequence, task.dv);
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
HWY_EXPORT(begin_keys);
HWY_EXPORT(run_head);
HWY_EXPORT(finish_keys);

// Each of the B x Hkv tasks is a key head with all its queries, so that dK and dV add up in one
// order and nothing is computed twice.
void attention_backward_kernel(Stream& stream, const KernelCall& call) {
  const Tensor &dout = call.inputs[0], &q = call.inputs[1], &k = call.inputs[2],
               &v = call.inputs[3], &o = call.inputs[4], &lse = call.inputs[5];
  const Tensor &dq = call.outputs[0], &dk = call.outputs[1], &dv = call.outputs[2];
  const std::int64_t kv_heads = k.type.shape[1], group = q.type.shape[1] / kv_heads;
  const AttentionShape shape = attention_shape(call.attributes, q.type.shape[2]);
  const std::int64_t batch = q.rows() / shape.sequence;
  const std::int64_t scratch_floats =
      attention_backward_scratch_floats(shape.sequence, shape.head_size);
  ThreadPool& pool = cpu(stream).pool();
  STRATA_CHECK(call.workspace.size() >= static_cast<std::size_t>(scratch_floats) * sizeof(float) *
                                            static_cast<std::size_t>(pool.threads()));

  pool.parallel_for(batch * kv_heads, [&](std::int64_t index, int worker) {
    const std::int64_t sample = index / kv_heads, kv_head = index % kv_heads;
    const std::int64_t row = sample * shape.sequence;
    auto* scratch = reinterpret_cast<float*>(call.workspace.data()) + worker * scratch_floats;
    const AttentionBackwardTask task{{k, row, kv_head},
                                     {v, row, kv_head},
                                     {dk, row, kv_head},
                                     {dv, row, kv_head},
                                     attention_random(call, shape, sample)};
    HWY_DYNAMIC_DISPATCH(begin_keys)(task, shape, scratch);
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      const auto blocks = static_cast<std::uint64_t>(head * shape.sequence) * shape.row_blocks;
      const AttentionBackwardHead queries{{q, row, head},
                                          {o, row, head},
                                          {dout, row, head},
                                          {dq, row, head},
                                          lse.row<float>(sample) + head * shape.sequence,
                                          blocks};
      HWY_DYNAMIC_DISPATCH(run_head)(task, queries, shape, scratch);
    }
    HWY_DYNAMIC_DISPATCH(finish_keys)(task, shape, scratch);
  });
}

}  // namespace strata::kernels
#endif
