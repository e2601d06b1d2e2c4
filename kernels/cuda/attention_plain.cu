// Attention with fp32 products, for any storage, head size and alignment: what the tensor-core
// kernels cannot take, and what they are checked against.
//
// A block of 16 x 16 threads works on tiles of 64 queries by 64 keys. Heads come through shared
// memory 64 columns at a time, so shared memory does not depend on the head size (69 KB at most)
// and every product is a 64 x 64 x 64 one, of which a thread makes 4 x 4 sums: 64 fma for eight
// 16-byte reads of shared memory, about what the pipes of an SM give side by side. Each tile reads
// its operands from the L2 cache again: 2 D * 64 * 64 * 2 flops for 3 * 64 * D * 4 bytes forward,
// 21 flops per byte, under the L2 rate where fp32 arithmetic is the limit.
#include <limits>
#include <type_traits>

#include "kernels/cuda/attention.cuh"

namespace strata::cuda {
namespace {

constexpr int kTile = 64;          // queries, keys, and columns of a head at a time
constexpr int kPitch = kTile + 4;  // floats between rows in shared memory: 16-byte aligned, and
                                   // rows that one instruction reads lie in different banks
constexpr int kBlocks = 16;        // threads each way
constexpr int kEach = kTile / kBlocks;
constexpr int kPlainThreads = kBlocks * kBlocks;
constexpr std::int64_t kTileBytes = sizeof(float) * kTile * kPitch;
constexpr std::int64_t kKeepBytes = kTile * kTile / 4;
constexpr float kLowest = -std::numeric_limits<float>::infinity();

/// 4 x 4 sums of one thread: rows row(i); columns column(j), or 4 consecutive ones.
using Sums = float[kEach][kEach];

STRATA_DEVICE int row_of(int i) { return thread() / kBlocks + kBlocks * i; }
STRATA_DEVICE int column_of(int j) { return thread() % kBlocks + kBlocks * j; }

STRATA_DEVICE void clear(Sums& sums) {
#pragma unroll
  for (int i = 0; i < kEach; ++i)
#pragma unroll
    for (int j = 0; j < kEach; ++j) sums[i][j] = 0;
}

struct SharedTile {
  float* data;

  [[nodiscard]] STRATA_DEVICE Pack<float, 4> pack(int row, int column) const {
    return load<4>(static_cast<const float*>(data) + row * kPitch + column);
  }
  STRATA_DEVICE float& at(int row, int column) const { return data[row * kPitch + column]; }
};

STRATA_DEVICE SharedTile shared_tile(int index) {
  return {reinterpret_cast<float*>(shared_memory() + index * kTileBytes)};
}

/// Rows [row, row + 64), columns [column, column + 64) of a head; zeros outside of it.
template <typename T>
STRATA_DEVICE void load_tile(const SharedTile& tile, const T* head, std::int64_t stride, int row,
                             int column, const AttentionShape& shape) {
  const int first = thread() % kBlocks * 4;
  const T* from = head + (row + row_of(0)) * stride + column + first;
#pragma unroll 2
  for (int i = 0; i < kEach; ++i, from += kBlocks * stride) {
    const bool inside = row + row_of(i) < shape.sequence;
    const int left = inside ? shape.head_size - column - first : 0;
    Pack<float, 4> pack{};
    if (shape.packs && left >= 4) {
      const auto elements = load<4>(from);
#pragma unroll
      for (int j = 0; j < 4; ++j) pack.v[j] = to_float(elements.v[j]);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (j < left) pack.v[j] = to_float(from[j]);
    }
    store<4>(tile.data + row_of(i) * kPitch + first, pack);
  }
}

/// Columns [column, column + 64) of rows [row, row + 64) of a head from sums of 4 consecutive
/// columns each.
template <typename T>
STRATA_DEVICE void store_tile(const Sums& sums, T* head, std::int64_t stride, int row, int column,
                              const AttentionShape& shape) {
  const int first = column + thread() % kBlocks * 4;
  T* to = head + (row + row_of(0)) * stride + first;
#pragma unroll
  for (int i = 0; i < kEach; ++i, to += kBlocks * stride) {
    if (row + row_of(i) >= shape.sequence) continue;
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (first + j < shape.head_size) to[j] = from_float<T>(sums[i][j]);
  }
}

/// Columns of chunk `chunk` that a head has.
STRATA_DEVICE int width_of(const AttentionShape& shape, int chunk) {
  const int left = shape.head_size - chunk * kTile;
  return left < kTile ? left : kTile;
}

/// sums[i][j] += row row_of(i) of `a` times row column_of(j) of `b`, in order of the first `width`
/// columns.
STRATA_DEVICE void multiply_rows(const SharedTile& a, const SharedTile& b, int width, Sums& sums) {
#pragma unroll 1
  for (int d = 0; d < width; d += 4) {
    Pack<float, 4> left[kEach], right[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) left[i] = a.pack(row_of(i), d);
#pragma unroll
    for (int j = 0; j < kEach; ++j) right[j] = b.pack(column_of(j), d);
#pragma unroll
    for (int x = 0; x < 4; ++x)
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] = fmaf(left[i].v[x], right[j].v[x], sums[i][j]);
  }
}

/// sums[i][j] += row row_of(i) of `a` times column 4 * (thread % 16) + j of `b`, in order of rows.
STRATA_DEVICE void multiply_columns(const SharedTile& a, const SharedTile& b, Sums& sums) {
  const int first = thread() % kBlocks * 4;
#pragma unroll 1
  for (int k = 0; k < kTile; k += 4) {
    Pack<float, 4> left[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) left[i] = a.pack(row_of(i), k);
#pragma unroll
    for (int x = 0; x < 4; ++x) {
      const Pack<float, 4> right = b.pack(k + x, first);
#pragma unroll
      for (int i = 0; i < kEach; ++i)
#pragma unroll
        for (int j = 0; j < kEach; ++j) sums[i][j] = fmaf(left[i].v[x], right.v[j], sums[i][j]);
    }
  }
}

/// Which probabilities of a tile stay: 4 bits per query and 4 keys, [64, 16] bytes.
struct KeepTile {
  std::uint8_t* bytes;

  STRATA_DEVICE void make(const AttentionShape& shape, int sample, int head, int query,
                          int key) const {
    const HeadDropout dropout = head_dropout(shape, sample, head);
#pragma unroll 1
    for (int at = thread(); at < kKeepBytes; at += kPlainThreads)
      bytes[at] = static_cast<std::uint8_t>(
          dropout.keeps(query + at / (kTile / 4), key / 4 + at % (kTile / 4)));
  }
  [[nodiscard]] STRATA_DEVICE bool keeps(int query, int key) const {
    return bytes[query * (kTile / 4) + key / 4] >> key % 4 & 1;
  }
};

/// Sum and maximum over the 16 threads that share rows: half a warp.
STRATA_DEVICE float sum_of_row(float x) {
#pragma unroll
  for (int mask = kBlocks / 2; mask > 0; mask /= 2) x += shuffle_xor(x, mask);
  return x;
}
STRATA_DEVICE float largest_of_row(float x) {
#pragma unroll
  for (int mask = kBlocks / 2; mask > 0; mask /= 2) x = fmaxf(x, shuffle_xor(x, mask));
  return x;
}

/// Chunks of 64 columns: 1, 2 or 4, of which those that are there are used.
template <typename T, int kChunks>
struct Forward {
  static constexpr int kThreads = kPlainThreads;
  static constexpr int kLeastBlocks = kChunks <= 2 ? 2 : 1;
  static constexpr std::int64_t kSharedBytes = 3 * kTileBytes + kKeepBytes;

  static STRATA_DEVICE void run(const AttentionForward<T>& x) {
    const AttentionShape& shape = x.shape;
    const TilePlace place = tile_place(x.order, block().x);
    const int query = (static_cast<int>(x.order.tiles) - 1 - place.tile) * kTile;
    const int key_head = place.head / shape.group;
    const std::int64_t row = std::int64_t{place.sample} * shape.sequence;
    const T* q = x.q.head(row, place.head, shape.head_size);
    const T* k = x.k.head(row, key_head, shape.head_size);
    const T* v = x.v.head(row, key_head, shape.head_size);
    const SharedTile q_tile = shared_tile(0), kv_tile = shared_tile(1), p_tile = shared_tile(2);
    const KeepTile keep{reinterpret_cast<std::uint8_t*>(shared_memory() + 3 * kTileBytes)};

    Sums out[kChunks];
#pragma unroll
    for (int c = 0; c < kChunks; ++c) clear(out[c]);
    float largest[kEach], total[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) largest[i] = kLowest, total[i] = 0;

    for (int key = 0; key <= query; key += kTile) {
      Sums scores;
      clear(scores);
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (c * kTile >= shape.head_size) break;
        sync_block();
        if (kChunks > 1 || key == 0) load_tile(q_tile, q, x.q.stride, query, c * kTile, shape);
        load_tile(kv_tile, k, x.k.stride, key, c * kTile, shape);
        if (c == 0 && shape.drops) keep.make(shape, place.sample, place.head, query, key);
        sync_block();
        multiply_rows(q_tile, kv_tile, width_of(shape, c), scores);
      }
      probabilities(shape, query, key, keep, scores, largest, total, out, p_tile);
#pragma unroll
      for (int c = 0; c < kChunks; ++c) {
        if (c * kTile >= shape.head_size) break;
        sync_block();
        load_tile(kv_tile, v, x.v.stride, key, c * kTile, shape);
        sync_block();
        multiply_columns(p_tile, kv_tile, out[c]);
      }
    }

    T* o = x.o.head(row, place.head, shape.head_size);
    float* lse = x.lse.head(place.sample, place.head, shape.sequence);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const float factor = shape.keep_scale / total[i];
#pragma unroll
      for (int c = 0; c < kChunks; ++c)
#pragma unroll
        for (int j = 0; j < kEach; ++j) out[c][i][j] *= factor;
      if (thread() % kBlocks == 0 && query + row_of(i) < shape.sequence)
        lse[query + row_of(i)] = static_cast<float>(static_cast<double>(largest[i]) +
                                                    log(static_cast<double>(total[i])));
    }
#pragma unroll
    for (int c = 0; c < kChunks; ++c) store_tile(out[c], o, x.o.stride, query, c * kTile, shape);
  }

  /// Scores become exp(scale * score - maximum) in `p_tile`, dropped where dropout says so; running
  /// maxima, sums and outputs follow.
  static STRATA_DEVICE void probabilities(const AttentionShape& shape, int query, int key,
                                          const KeepTile& keep, Sums& scores,
                                          float (&largest)[kEach], float (&total)[kEach],
                                          Sums (&out)[kChunks], const SharedTile& p_tile) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      float most = kLowest;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        if (key + column_of(j) > query + row_of(i)) scores[i][j] = kLowest;
        most = fmaxf(most, scores[i][j]);
      }
      const float now = fmaxf(largest[i], largest_of_row(most) * shape.scale);
      const float shrink = expf(largest[i] - now);
      float sum = 0;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const float p = expf(fmaf(scores[i][j], shape.scale, -now));
        sum += p;
        p_tile.at(row_of(i), column_of(j)) =
            shape.drops && !keep.keeps(row_of(i), column_of(j)) ? 0.0f : p;
      }
      total[i] = fmaf(total[i], shrink, sum_of_row(sum));
      largest[i] = now;
#pragma unroll
      for (int c = 0; c < kChunks; ++c)
#pragma unroll
        for (int j = 0; j < kEach; ++j) out[c][i][j] *= shrink;
    }
  }
};

/// One head of queries and its head of keys.
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

/// What enters dV and what enters dQ and dK, from a score and the gradient of its probability.
struct ScoreGradient {
  float used, gradient;
};
STRATA_DEVICE ScoreGradient score_gradient(const AttentionShape& shape, bool seen, bool keep,
                                           float score, float gradient, float lse, float delta) {
  const float p = seen ? expf(fmaf(score, shape.scale, -lse)) : 0.0f;
  const float scaled = keep ? gradient * shape.keep_scale : 0.0f;
  return {keep ? p * shape.keep_scale : 0.0f, p * (scaled - delta) * shape.scale};
}

/// dK and dV of 64 keys of one key head: sums over its query heads in order, then their queries in
/// order. Tiles are kept [keys, queries].
template <typename T, int kChunks>
struct BackwardKeys {
  static constexpr int kThreads = kPlainThreads;
  static constexpr int kLeastBlocks = kChunks <= 1 ? 2 : 1;
  static constexpr std::int64_t kSharedBytes = 4 * kTileBytes + kKeepBytes;

  static STRATA_DEVICE void run(const AttentionBackward<T>& x) {
    const AttentionShape& shape = x.shape;
    const TilePlace place = tile_place(x.order, block().x);
    const int key = place.tile * kTile;
    Sums dk[kChunks], dv[kChunks];
#pragma unroll
    for (int c = 0; c < kChunks; ++c) clear(dk[c]), clear(dv[c]);

    for (int member = 0; member < shape.group; ++member) {
      const BackwardHead<T> head(x, place.sample, place.head * shape.group + member);
      for (int query = key; query < shape.sequence; query += kTile)
        add_queries(x, head, query, key, dk, dv);
    }
    const std::int64_t row = std::int64_t{place.sample} * shape.sequence;
    T* dk_rows = x.dk.head(row, place.head, shape.head_size);
    T* dv_rows = x.dv.head(row, place.head, shape.head_size);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      store_tile(dk[c], dk_rows, x.dk.stride, key, c * kTile, shape);
      store_tile(dv[c], dv_rows, x.dv.stride, key, c * kTile, shape);
    }
  }

  static STRATA_DEVICE void add_queries(const AttentionBackward<T>& x, const BackwardHead<T>& head,
                                        int query, int key, Sums (&dk)[kChunks],
                                        Sums (&dv)[kChunks]) {
    const AttentionShape& shape = x.shape;
    const SharedTile a = shared_tile(0), b = shared_tile(1), p = shared_tile(2),
                     ds = shared_tile(3);
    const KeepTile keep{reinterpret_cast<std::uint8_t*>(shared_memory() + 4 * kTileBytes)};
    Sums scores, gradients;
    clear(scores);
    clear(gradients);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (c * kTile >= shape.head_size) break;
      sync_block();
      load_tile(a, head.k, x.k.stride, key, c * kTile, shape);
      load_tile(b, head.q, x.q.stride, query, c * kTile, shape);
      if (c == 0 && shape.drops) keep.make(shape, head.sample, head.index, query, key);
      sync_block();
      multiply_rows(a, b, width_of(shape, c), scores);
      sync_block();
      load_tile(a, head.v, x.v.stride, key, c * kTile, shape);
      load_tile(b, head.dout, x.dout.stride, query, c * kTile, shape);
      sync_block();
      multiply_rows(a, b, width_of(shape, c), gradients);
    }
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const int at = query + column_of(j);
      const bool there = at < shape.sequence;
      const float lse = there ? head.lse[at] : 0.0f, delta = there ? head.delta[at] : 0.0f;
#pragma unroll
      for (int i = 0; i < kEach; ++i) {
        const ScoreGradient g = score_gradient(shape, there && key + row_of(i) <= at,
                                               !shape.drops || keep.keeps(column_of(j), row_of(i)),
                                               scores[i][j], gradients[i][j], lse, delta);
        p.at(row_of(i), column_of(j)) = g.used;
        ds.at(row_of(i), column_of(j)) = g.gradient;
      }
    }
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (c * kTile >= shape.head_size) break;
      sync_block();
      load_tile(a, head.q, x.q.stride, query, c * kTile, shape);
      load_tile(b, head.dout, x.dout.stride, query, c * kTile, shape);
      sync_block();
      multiply_columns(ds, a, dk[c]);
      multiply_columns(p, b, dv[c]);
    }
  }
};

/// dQ of 64 queries of one head: sums over their keys in order.
template <typename T, int kChunks>
struct BackwardQueries {
  static constexpr int kThreads = kPlainThreads;
  static constexpr int kLeastBlocks = kChunks <= 2 ? 2 : 1;
  static constexpr std::int64_t kSharedBytes = 3 * kTileBytes + kKeepBytes;

  static STRATA_DEVICE void run(const AttentionBackward<T>& x) {
    const AttentionShape& shape = x.shape;
    const TilePlace place = tile_place(x.order, block().x);
    const int query = (static_cast<int>(x.order.tiles) - 1 - place.tile) * kTile;
    const BackwardHead<T> head(x, place.sample, place.head);
    Sums dq[kChunks];
#pragma unroll
    for (int c = 0; c < kChunks; ++c) clear(dq[c]);
    for (int key = 0; key <= query; key += kTile) add_keys(x, head, query, key, dq);
    T* rows = x.dq.head(std::int64_t{place.sample} * shape.sequence, place.head, shape.head_size);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) store_tile(dq[c], rows, x.dq.stride, query, c * kTile, shape);
  }

  static STRATA_DEVICE void add_keys(const AttentionBackward<T>& x, const BackwardHead<T>& head,
                                     int query, int key, Sums (&dq)[kChunks]) {
    const AttentionShape& shape = x.shape;
    const SharedTile a = shared_tile(0), b = shared_tile(1), ds = shared_tile(2);
    const KeepTile keep{reinterpret_cast<std::uint8_t*>(shared_memory() + 3 * kTileBytes)};
    Sums scores, gradients;
    clear(scores);
    clear(gradients);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (c * kTile >= shape.head_size) break;
      sync_block();
      load_tile(a, head.q, x.q.stride, query, c * kTile, shape);
      load_tile(b, head.k, x.k.stride, key, c * kTile, shape);
      if (c == 0 && shape.drops) keep.make(shape, head.sample, head.index, query, key);
      sync_block();
      multiply_rows(a, b, width_of(shape, c), scores);
      sync_block();
      load_tile(a, head.dout, x.dout.stride, query, c * kTile, shape);
      load_tile(b, head.v, x.v.stride, key, c * kTile, shape);
      sync_block();
      multiply_rows(a, b, width_of(shape, c), gradients);
    }
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int at = query + row_of(i);
      const bool there = at < shape.sequence;
      const float lse = there ? head.lse[at] : 0.0f, delta = there ? head.delta[at] : 0.0f;
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const ScoreGradient g = score_gradient(shape, key + column_of(j) <= at,
                                               !shape.drops || keep.keeps(row_of(i), column_of(j)),
                                               scores[i][j], gradients[i][j], lse, delta);
        ds.at(row_of(i), column_of(j)) = g.gradient;
      }
    }
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      if (c * kTile >= shape.head_size) break;
      sync_block();
      load_tile(b, head.k, x.k.stride, key, c * kTile, shape);
      sync_block();
      multiply_columns(ds, b, dq[c]);
    }
  }
};

/// Calls run(std::integral_constant<int, chunks>()).
template <typename Run>
void with_chunks(int head_size, const Run& run) {
  if (head_size <= kTile) return run(std::integral_constant<int, 1>());
  if (head_size <= 2 * kTile) return run(std::integral_constant<int, 2>());
  return run(std::integral_constant<int, 4>());
}

}  // namespace

template <typename T>
void plain_attention(kernels::Stream& stream, const AttentionForward<T>& call) {
  const AttentionShape& shape = call.shape;
  AttentionForward<T> arguments = call;
  arguments.order =
      tile_order(shape, kTile, shape.heads, shape.group,
                 2 * std::int64_t{shape.sequence} * shape.head_size * std::int64_t{sizeof(T)});
  with_chunks(shape.head_size, [&](auto chunks) {
    using Body = Forward<T, decltype(chunks)::value>;
    launch<Body>(stream, tiles_launch(arguments.order, Body::kSharedBytes), arguments);
  });
}

template <typename T>
void plain_attention_backward(kernels::Stream& stream, const AttentionBackward<T>& call) {
  const AttentionShape& shape = call.shape;
  AttentionBackward<T> arguments = call;
  const std::int64_t pair =
      2 * std::int64_t{shape.sequence} * shape.head_size * std::int64_t{sizeof(T)};
  with_chunks(shape.head_size, [&](auto chunks) {
    using Keys = BackwardKeys<T, decltype(chunks)::value>;
    arguments.order = tile_order(shape, kTile, shape.heads / shape.group, 1, pair * shape.group);
    launch<Keys>(stream, tiles_launch(arguments.order, Keys::kSharedBytes), arguments);
    using Queries = BackwardQueries<T, decltype(chunks)::value>;
    arguments.order = tile_order(shape, kTile, shape.heads, shape.group, pair);
    launch<Queries>(stream, tiles_launch(arguments.order, Queries::kSharedBytes), arguments);
  });
}

#define STRATA_PLAIN_ATTENTION(T)                                                 \
  template void plain_attention<T>(kernels::Stream&, const AttentionForward<T>&); \
  template void plain_attention_backward<T>(kernels::Stream&, const AttentionBackward<T>&)
STRATA_PLAIN_ATTENTION(float);
STRATA_PLAIN_ATTENTION(Bf16);
STRATA_PLAIN_ATTENTION(Half);
#undef STRATA_PLAIN_ATTENTION

}  // namespace strata::cuda
