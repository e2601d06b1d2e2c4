// Pieces that the two backward kernels of attention with fp32 products share.
#pragma once

#include "kernels/cuda/attention_plain.cuh"

namespace strata::cuda::plain {

/// The operands of one query head and its key head.
template <typename T>
struct BackwardHead {
  const T *dout, *q, *k, *v;
  const float *lse, *delta;
  int sample, index;

  STRATA_DEVICE BackwardHead(const AttentionBackward<T>& x, int its_sample, int head)
      : sample(its_sample), index(head) {
    const AttentionShape& shape = x.shape;
    const std::int64_t row = std::int64_t{sample} * shape.sequence;
    dout = x.dout.head(row, head, shape.head_size);
    q = x.q.head(row, head, shape.head_size);
    k = x.k.head(row, head / shape.group, shape.head_size);
    v = x.v.head(row, head / shape.group, shape.head_size);
    lse = x.lse.head(sample, head, shape.sequence);
    delta = x.delta.head(sample, head, shape.sequence);
  }
};

/// The probability that enters dV, and the gradient of the score, which enters dQ and dK.
struct ScoreGradient {
  float used, gradient;
};
STRATA_DEVICE ScoreGradient score_gradient(const AttentionShape& shape, bool seen, bool keep,
                                           float score, float gradient, float lse, float delta) {
  const float p = seen ? expf(fmaf(score, shape.scale, -lse)) : 0.0f;
  const float scaled = keep ? gradient * shape.keep_scale : 0.0f;
  return {keep ? p * shape.keep_scale : 0.0f, p * (scaled - delta) * shape.scale};
}

/// Computes the scores of 64 keys and 64 queries and the gradients of their probabilities. Keys are
/// the rows of the sums if kKeyRows, else the columns. Also fills `keep`, where there is dropout.
template <bool kKeyRows, int kChunks, typename T>
STRATA_DEVICE void multiply_heads(const AttentionBackward<T>& x, const BackwardHead<T>& head,
                                  int query, int key, const KeepTile& keep, Sums& scores,
                                  Sums& gradients) {
  const AttentionShape& shape = x.shape;
  const SharedTile rows = shared_tile(0), columns = shared_tile(1);
  const SharedTile keys = kKeyRows ? rows : columns, queries = kKeyRows ? columns : rows;
  clear(scores);
  clear(gradients);
#pragma unroll 1
  for (int c = 0; c < kChunks; ++c) {
    if (c * kTile >= shape.head_size) break;
    sync_block();
    load_tile(keys, head.k, x.k.stride, key, c * kTile, shape);
    load_tile(queries, head.q, x.q.stride, query, c * kTile, shape);
    if (c == 0 && shape.drops) keep.make(shape, head.sample, head.index, query, key);
    sync_block();
    multiply_rows(rows, columns, width_of(shape, c), scores);
    sync_block();
    load_tile(keys, head.v, x.v.stride, key, c * kTile, shape);
    load_tile(queries, head.dout, x.dout.stride, query, c * kTile, shape);
    sync_block();
    multiply_rows(rows, columns, width_of(shape, c), gradients);
  }
}

/// Calls store(i, j, ScoreGradient) for this thread's sums of multiply_heads.
template <bool kKeyRows, typename T, typename Store>
STRATA_DEVICE void score_gradients(const AttentionBackward<T>& x, const BackwardHead<T>& head,
                                   int query, int key, const KeepTile& keep, const Sums& scores,
                                   const Sums& gradients, const Store& store) {
  const AttentionShape& shape = x.shape;
#pragma unroll
  for (int m = 0; m < kEach; ++m) {
    const int in_queries = kKeyRows ? column_of(m) : row_of(m), at = query + in_queries;
    const bool there = at < shape.sequence;
    const float lse = there ? head.lse[at] : 0.0f, delta = there ? head.delta[at] : 0.0f;
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int in_keys = kKeyRows ? row_of(n) : column_of(n);
      const int i = kKeyRows ? n : m, j = kKeyRows ? m : n;
      store(i, j,
            score_gradient(shape, there && key + in_keys <= at,
                           !shape.drops || keep.keeps(in_queries, in_keys), scores[i][j],
                           gradients[i][j], lse, delta));
    }
  }
}

}  // namespace strata::cuda::plain
