// Backward pass of attention with fp32 products: dK and dV.
#include "kernels/cuda/attention_plain_backward.cuh"

namespace strata::cuda {
namespace {

using namespace plain;

/// Computes dK and dV of 64 keys of one key head: sums over its query heads in order, and over the
/// queries of each in order. Tiles of scores are [keys, queries].
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
    multiply_heads<true, kChunks>(x, head, query, key, keep, scores, gradients);
    score_gradients<true>(x, head, query, key, keep, scores, gradients,
                          [&](int i, int j, const ScoreGradient& g) {
                            p.at(row_of(i), column_of(j)) = g.used;
                            ds.at(row_of(i), column_of(j)) = g.gradient;
                          });
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

}  // namespace

template <typename T>
void plain_attention_keys(kernels::Stream& stream, const AttentionBackward<T>& call) {
  const AttentionShape& shape = call.shape;
  AttentionBackward<T> arguments = call;
  const std::int64_t pair =
      2 * std::int64_t{shape.sequence} * shape.head_size * std::int64_t{sizeof(T)};
  arguments.order = tile_order(shape, kTile, shape.heads / shape.group, 1, pair * shape.group);
  with_chunks(shape.head_size, [&](auto chunks) {
    using Body = BackwardKeys<T, decltype(chunks)::value>;
    launch<Body>(stream, tiles_launch(arguments.order, Body::kSharedBytes), arguments);
  });
}

template void plain_attention_keys<float>(kernels::Stream&, const AttentionBackward<float>&);
template void plain_attention_keys<Bf16>(kernels::Stream&, const AttentionBackward<Bf16>&);
template void plain_attention_keys<Half>(kernels::Stream&, const AttentionBackward<Half>&);

}  // namespace strata::cuda
