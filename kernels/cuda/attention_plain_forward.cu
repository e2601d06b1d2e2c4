// Forward pass of attention with fp32 products.
#include "kernels/cuda/attention_plain.cuh"

namespace strata::cuda {
namespace {

using namespace plain;

/// Sum and maximum over the 16 threads (half a warp) that share rows.
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

/// Computes O and the log-sum-exp of 64 queries. Chunks (1, 2 or 4) beyond the head are skipped.
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
#pragma unroll 1
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

  /// Writes exp(scale * score - maximum) to `p_tile`, or zero where dropout takes it away, and
  /// updates the running maxima, sums and outputs.
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

template void plain_attention<float>(kernels::Stream&, const AttentionForward<float>&);
template void plain_attention<Bf16>(kernels::Stream&, const AttentionForward<Bf16>&);
template void plain_attention<Half>(kernels::Stream&, const AttentionForward<Half>&);

}  // namespace strata::cuda
