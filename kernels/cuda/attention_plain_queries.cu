// Backward pass of attention with fp32 products: dQ.
#include "kernels/cuda/attention_plain_backward.cuh"

namespace strata::cuda {
namespace {

using namespace plain;

/// Computes dQ of 64 queries of one head: sums over their keys in order.
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
    const SharedTile b = shared_tile(1), ds = shared_tile(2);
    const KeepTile keep{reinterpret_cast<std::uint8_t*>(shared_memory() + 3 * kTileBytes)};
    Sums scores, gradients;
    multiply_heads<false, kChunks>(x, head, query, key, keep, scores, gradients);
    score_gradients<false>(
        x, head, query, key, keep, scores, gradients,
        [&](int i, int j, const ScoreGradient& g) { ds.at(row_of(i), column_of(j)) = g.gradient; });
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

}  // namespace

template <typename T>
void plain_attention_queries(kernels::Stream& stream, const AttentionBackward<T>& call) {
  const AttentionShape& shape = call.shape;
  AttentionBackward<T> arguments = call;
  const std::int64_t pair =
      2 * std::int64_t{shape.sequence} * shape.head_size * std::int64_t{sizeof(T)};
  arguments.order = tile_order(shape, kTile, shape.heads, shape.group, pair);
  with_chunks(shape.head_size, [&](auto chunks) {
    using Body = BackwardQueries<T, decltype(chunks)::value>;
    launch<Body>(stream, tiles_launch(arguments.order, Body::kSharedBytes), arguments);
  });
}

template void plain_attention_queries<float>(kernels::Stream&, const AttentionBackward<float>&);
template void plain_attention_queries<Bf16>(kernels::Stream&, const AttentionBackward<Bf16>&);
template void plain_attention_queries<Half>(kernels::Stream&, const AttentionBackward<Half>&);

}  // namespace strata::cuda
