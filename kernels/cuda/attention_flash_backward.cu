// Backward pass of attention on tensor cores.
#include <limits>
#include <type_traits>

#include "kernels/cuda/attention_flash.cuh"

namespace strata::cuda {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Turns scores, and gradients of probabilities, into left operands of the products that follow.
struct ScoreWeights {
  float scale;       ///< factor of scores, divided by ln 2
  float keep_scale;  ///< factor of the gradients of probabilities that dropout keeps

  /// Takes fragments 2 step and 2 step + 1 and the mask `keep` (see keep_queries). Writes rounded
  /// probabilities (to `used`, if not null) and gradients of scores, without the final factors.
  template <typename T, bool kDrops, int kN, typename Lse, typename Delta>
  STRATA_DEVICE void make(const float (&scores)[kN][4], const float (&gradients)[kN][4], int step,
                          std::uint32_t keep, const Lse& lse, const Delta& delta,
                          std::uint32_t (*used)[4], std::uint32_t (&ds)[4]) const {
    float p[2][4], g[2][4];
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        p[n][e] = exp2_fast(fmaf(scores[2 * step + n][e], scale, -lse(n, e)));
        float gradient = gradients[2 * step + n][e];
        const bool stays = !kDrops || (keep >> (4 * n + e) & 1) != 0;
        if constexpr (kDrops) gradient = stays ? gradient * keep_scale : 0.0f;
        g[n][e] = p[n][e] * (gradient - delta(n, e));
        if (!stays) p[n][e] = 0;
      }
    if (used != nullptr) round_fragment<T>(*used, p);
    round_fragment<T>(ds, g);
  }
};

/// Sets scores that the causal mask hides to -infinity. `ahead` says how far the key of element
/// (0, 0, 0) lies after its query. Keys are rows if kKeyRows, else columns.
template <bool kKeyRows, int kM, int kN>
STRATA_DEVICE void hide_future(Fragments<kM, kN>& scores, int ahead) {
#pragma unroll
  for (int m = 0; m < kM; ++m)
#pragma unroll
    for (int n = 0; n < kN; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int row = 16 * m + e / 2 * 8, column = 8 * n + e % 2;
        if (ahead > (kKeyRows ? column - row : row - column)) scores[m][n][e] = -kInfinity;
      }
}

/// Computes dK and dV of 64 kM keys of one key head: sums over its query heads, and their queries,
/// in order. Products have keys as rows, so that P^T and dS^T are left operands as they are.
template <typename T, int kWidth, bool kDrops>
struct FlashKeys {
  static constexpr int kThreads = kFlashThreads;
  static constexpr int kM = kWidth == 64 ? 2 : 1;
  static constexpr int kRows = 16 * kM;  // keys of a warp
  static constexpr int kKeys = kRows * kFlashWarps;
  static constexpr int kQueries = kWidth == 256 ? 32 : 64;  // per step of the loop
  static constexpr int kStages = kWidth == 256 ? 1 : 2;     // pairs of Q and dO in shared memory
  // Queries whose scores are held at a time; dropout needs registers for its random numbers, too.
  static constexpr int kUnit = kWidth == 64 ? (kDrops ? 16 : 32) : kQueries;
  static constexpr int kParts = kWidth == 256 ? 2 : 1;  // blocks that share the columns of a tile
  static constexpr int kN = kUnit / 8, kOutN = kWidth / 8 / kParts;
  static constexpr int kRowBytes = 2 * kWidth;
  static constexpr int kStageBytes = 2 * kQueries * kRowBytes;
  static constexpr int kNumbers = 2 * kQueries;  // lse / ln 2 per query, then delta per query
  static constexpr std::int64_t kSharedBytes =
      2 * kKeys * kRowBytes + kStages * (kStageBytes + kNumbers * std::int64_t{sizeof(float)});
  static_assert(kSharedBytes <= kSharedBytesEverywhere && kNumbers <= kThreads);
  using Tile = HeadTile<T, kWidth>;

  static STRATA_DEVICE Tile k_tile() { return {shared_memory()}; }
  static STRATA_DEVICE Tile v_tile() { return {shared_memory() + kKeys * kRowBytes}; }
  static STRATA_DEVICE Tile q_tile(int stage) {
    return {shared_memory() + 2 * kKeys * kRowBytes + stage * kStageBytes};
  }
  static STRATA_DEVICE Tile dout_tile(int stage) {
    return {q_tile(stage).data + kQueries * kRowBytes};
  }
  static STRATA_DEVICE float* numbers(int stage) {
    return reinterpret_cast<float*>(shared_memory() + 2 * kKeys * kRowBytes +
                                    kStages * kStageBytes) +
           stage * kNumbers;
  }

  /// The tile of queries of one step of the loop: its query head and its first query.
  struct Queries {
    int head, first;
  };

  static STRATA_DEVICE void run(const AttentionBackward<T>& x) {
    const AttentionShape& shape = x.shape;
    const TilePlace place = tile_place(x.order, block().x / kParts);
    const int part = static_cast<int>(block().x % kParts);
    const int first_key = place.tile * kKeys;
    const std::int64_t row = std::int64_t{place.sample} * shape.sequence;
    const int last_head = (place.head + 1) * shape.group - 1;

    k_tile().template fetch<kKeys>(
        Tile::source(x.k, x.k.head(row, place.head, shape.head_size), first_key), x.k.stride,
        first_key, shape);
    v_tile().template fetch<kKeys>(
        Tile::source(x.v, x.v.head(row, place.head, shape.head_size), first_key), x.v.stride,
        first_key, shape);
    Queries now{place.head * shape.group, first_key};
    fetch(x, place.sample, now, 0);
    keep_number(0, number(x, place.sample, now));

    Fragments<kM, kOutN> dk, dv;
    clear(dk);
    clear(dv);
    for (int stage = 0;; stage = (stage + 1) % kStages) {
      Queries next{now.head, now.first + kQueries};
      if (next.first >= shape.sequence) next = {now.head + 1, first_key};
      const bool more = next.head <= last_head;
      float next_number = 0;
      copy_async_wait<0>();
      sync_block();  // this stage has arrived, and nobody reads the other one any more
      if (kStages > 1 && more) {
        fetch(x, place.sample, next, stage ^ 1);
        next_number = number(x, place.sample, next);
      }
      add_queries(x, place.sample, now, first_key, stage, part, dk, dv);
      if (!more) break;
      if (kStages == 1) {
        sync_block();
        fetch(x, place.sample, next, 0);
        next_number = number(x, place.sample, next);
      }
      keep_number((stage + 1) % kStages, next_number);
      now = next;
    }

    const int warp_row = uniform(warp()) * kRows, column = part * 8 * kOutN;
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int n = 0; n < kOutN; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          dk[m][n][e] *= shape.scale;
          dv[m][n][e] *= shape.keep_scale;
        }
    // Only this warp read its rows of keys and values, and it is done with them: they are scratch.
    store_fragments(dk, k_tile().data + warp_row * kRowBytes,
                    x.dk.head(row, place.head, shape.head_size), x.dk.stride, first_key + warp_row,
                    column, shape);
    store_fragments(dv, v_tile().data + warp_row * kRowBytes,
                    x.dv.head(row, place.head, shape.head_size), x.dv.stride, first_key + warp_row,
                    column, shape);
  }

  static STRATA_DEVICE void fetch(const AttentionBackward<T>& x, int sample, const Queries& tile,
                                  int stage) {
    const AttentionShape& shape = x.shape;
    const std::int64_t row = std::int64_t{sample} * shape.sequence;
    q_tile(stage).template fetch<kQueries>(
        Tile::source(x.q, x.q.head(row, tile.head, shape.head_size), tile.first), x.q.stride,
        tile.first, shape);
    dout_tile(stage).template fetch<kQueries>(
        Tile::source(x.dout, x.dout.head(row, tile.head, shape.head_size), tile.first),
        x.dout.stride, tile.first, shape);
    copy_async_commit();
  }

  /// Stores this thread's number; of threads with the same one, the first stores it. kThreads ==
  /// kNumbers avoids a comparison that is always true, which would cost registers.
  static STRATA_DEVICE void keep_number(int stage, float number) {
    if (kThreads == kNumbers || thread() < kNumbers) numbers(stage)[thread()] = number;
  }

  /// Reads this thread's number of a tile. Beyond the sequence probabilities become zero.
  static STRATA_DEVICE float number(const AttentionBackward<T>& x, int sample,
                                    const Queries& tile) {
    const int at = thread() % kNumbers, query = tile.first + at % kQueries;
    const bool is_delta = at >= kQueries;
    if (query >= x.shape.sequence) return is_delta ? 0.0f : kInfinity;
    if (is_delta) return x.delta.head(sample, tile.head, x.shape.sequence)[query];
    return x.lse.head(sample, tile.head, x.shape.sequence)[query] * kLog2E;
  }

  static STRATA_DEVICE void add_queries(const AttentionBackward<T>& x, int sample,
                                        const Queries& tile, int first_key, int stage, int part,
                                        Fragments<kM, kOutN>& dk, Fragments<kM, kOutN>& dv) {
    const AttentionShape& shape = x.shape;
    const HeadDropout dropout = kDrops ? uniform_dropout(shape, sample, tile.head) : HeadDropout();
    const ScoreWeights weights{shape.scale * kLog2E, shape.keep_scale};
    const int warp_row = uniform(warp()) * kRows, key = first_key + warp_row;
    // Columns begin at a multiple of eight chunks, so the permutation of chunks stays the same.
    const int column_bytes = part * kOutN * 16;
    const Tile q = q_tile(stage), dout = dout_tile(stage);
    const Tile q_part{q.data + column_bytes}, dout_part{dout.data + column_bytes};
    const float *lse = numbers(stage) + lane() % 4 * 2, *delta = lse + kQueries;
#pragma unroll 1
    for (int unit = 0; unit < kQueries; unit += kUnit) {
      const int query = tile.first + unit;
      if (query + kUnit - 1 < key || query >= shape.sequence) continue;
      Fragments<kM, kN> scores, gradients;
      clear(scores);
      clear(gradients);
      multiply_rows(scores, k_tile(), warp_row, q, unit);
      if (query < key + kRows - 1)
        hide_future<true>(scores, fragment_row(0, 0) + key - (fragment_column(0, 0) + query));
      multiply_rows(gradients, v_tile(), warp_row, dout, unit);
#pragma unroll
      for (int step = 0; step < kUnit / 16; ++step) {
        Pack<float, 2> lse_pair[2], delta_pair[2];
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          lse_pair[n] = load<2>(lse + unit + 16 * step + 8 * n);
          delta_pair[n] = load<2>(delta + unit + 16 * step + 8 * n);
        }
        LeftFragments<kM> used, ds;
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          const std::uint32_t keep =
              kDrops ? keep_keys<2>(dropout, key + 16 * m, query + 16 * step) : 0;
          weights.template make<T, kDrops>(
              scores[m], gradients[m], step, keep,
              [&](int n, int e) { return lse_pair[n].v[e % 2]; },
              [&](int n, int e) { return delta_pair[n].v[e % 2]; }, &used[m], ds[m]);
        }
        multiply_down(dv, used, dout_part, unit + 16 * step);
        multiply_down(dk, ds, q_part, unit + 16 * step);
      }
    }
  }
};

/// Computes dQ of 64 kM queries of one head: sums over keys in order.
template <typename T, int kWidth, bool kDrops>
struct FlashQueries {
  static constexpr int kThreads = kFlashThreads;
  static constexpr int kM = kWidth <= 128 ? 2 : 1;
  static constexpr int kRows = 16 * kM;  // queries of a warp
  static constexpr int kQueries = kRows * kFlashWarps;
  static constexpr int kKeys = kWidth == 64 ? 64 : 32;             // per step of the loop
  static constexpr int kStages = kWidth == 256 ? 1 : 2;            // K, V pairs in shared memory
  static constexpr int kUnit = kWidth == 128 && kDrops ? 16 : 32;  // keys with scores at a time
  static constexpr int kN = kUnit / 8, kOutN = kWidth / 8;
  static constexpr int kRowBytes = 2 * kWidth;
  static constexpr int kStageBytes = 2 * kKeys * kRowBytes;
  static constexpr std::int64_t kSharedBytes = 2 * kQueries * kRowBytes + kStages * kStageBytes;
  static_assert(kSharedBytes <= kSharedBytesEverywhere);
  using Tile = HeadTile<T, kWidth>;

  static STRATA_DEVICE Tile q_tile() { return {shared_memory()}; }
  static STRATA_DEVICE Tile dout_tile() { return {shared_memory() + kQueries * kRowBytes}; }
  static STRATA_DEVICE Tile k_tile(int stage) {
    return {shared_memory() + 2 * kQueries * kRowBytes + stage * kStageBytes};
  }
  static STRATA_DEVICE Tile v_tile(int stage) { return {k_tile(stage).data + kKeys * kRowBytes}; }

  struct Rows {
    float lse[kM][2], delta[kM][2];  ///< lse is divided by ln 2
  };

  static STRATA_DEVICE void run(const AttentionBackward<T>& x) {
    const AttentionShape& shape = x.shape;
    const TilePlace place = tile_place(x.order, block().x);
    const int first_query = (static_cast<int>(x.order.tiles) - 1 - place.tile) * kQueries;
    const int last_query =
        first_query + kQueries <= shape.sequence ? first_query + kQueries - 1 : shape.sequence - 1;
    const std::int64_t row = std::int64_t{place.sample} * shape.sequence;
    const int key_head = place.head / shape.group;
    const HeadDropout dropout =
        kDrops ? uniform_dropout(shape, place.sample, place.head) : HeadDropout();
    const int warp_row = uniform(warp()) * kRows, query = first_query + warp_row;

    q_tile().template fetch<kQueries>(
        Tile::source(x.q, x.q.head(row, place.head, shape.head_size), first_query), x.q.stride,
        first_query, shape);
    dout_tile().template fetch<kQueries>(
        Tile::source(x.dout, x.dout.head(row, place.head, shape.head_size), first_query),
        x.dout.stride, first_query, shape);
    const T* k = Tile::source(x.k, x.k.head(row, key_head, shape.head_size), 0);
    const T* v = Tile::source(x.v, x.v.head(row, key_head, shape.head_size), 0);
    const auto fetch = [&](int key, int stage) {
      k_tile(stage).template fetch<kKeys>(k, x.k.stride, key, shape);
      v_tile(stage).template fetch<kKeys>(v, x.v.stride, key, shape);
      k += kKeys * x.k.stride;
      v += kKeys * x.v.stride;
      copy_async_commit();
    };
    fetch(0, 0);
    Rows rows;
    load_rows(x, place, query, rows);

    Fragments<kM, kOutN> dq;
    clear(dq);
    int stage = 0;
    for (int key = 0; key <= last_query; key += kKeys, stage = (stage + 1) % kStages) {
      const bool more = key + kKeys <= last_query;
      copy_async_wait<0>();
      sync_block();  // this stage has arrived, and nobody reads the other one any more
      if (kStages > 1 && more) fetch(key + kKeys, stage ^ 1);
      add_keys(shape, dropout, rows, query, key, stage, dq);
      if (kStages == 1 && more) {
        sync_block();
        fetch(key + kKeys, 0);
      }
    }
    if (query >= shape.sequence) return;
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int n = 0; n < kOutN; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) dq[m][n][e] *= shape.scale;
    // Only this warp read its rows of queries, and it is done with them: they are scratch.
    store_fragments(dq, q_tile().data + warp_row * kRowBytes,
                    x.dq.head(row, place.head, shape.head_size), x.dq.stride, query, 0, shape);
  }

  static STRATA_DEVICE void load_rows(const AttentionBackward<T>& x, const TilePlace& place,
                                      int query, Rows& rows) {
    const float* lse = x.lse.head(place.sample, place.head, x.shape.sequence);
    const float* delta = x.delta.head(place.sample, place.head, x.shape.sequence);
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int at = query + fragment_row(m, 2 * half);
        const bool there = at < x.shape.sequence;
        rows.lse[m][half] = there ? lse[at] * kLog2E : kInfinity;
        rows.delta[m][half] = there ? delta[at] : 0.0f;
      }
  }

  static STRATA_DEVICE void add_keys(const AttentionShape& shape, const HeadDropout& dropout,
                                     const Rows& rows, int query, int first_key, int stage,
                                     Fragments<kM, kOutN>& dq) {
    const ScoreWeights weights{shape.scale * kLog2E, shape.keep_scale};
    const int warp_row = uniform(warp()) * kRows;
    const Tile k = k_tile(stage), v = v_tile(stage);
#pragma unroll 1
    for (int unit = 0; unit < kKeys; unit += kUnit) {
      const int key = first_key + unit;
      if (key > query + kRows - 1 || query >= shape.sequence) continue;
      Fragments<kM, kN> scores, gradients;
      clear(scores);
      clear(gradients);
      multiply_rows(scores, q_tile(), warp_row, k, unit);
      if (key + kUnit - 1 > query)
        hide_future<false>(scores, fragment_column(0, 0) + key - (fragment_row(0, 0) + query));
      multiply_rows(gradients, dout_tile(), warp_row, v, unit);
#pragma unroll
      for (int step = 0; step < kUnit / 16; ++step) {
        LeftFragments<kM> ds;
#pragma unroll
        for (int m = 0; m < kM; ++m) {
          const std::uint32_t keep =
              kDrops ? keep_queries<2>(dropout, query + 16 * m, key + 16 * step) : 0;
          weights.template make<T, kDrops>(
              scores[m], gradients[m], step, keep, [&](int, int e) { return rows.lse[m][e / 2]; },
              [&](int, int e) { return rows.delta[m][e / 2]; }, nullptr, ds[m]);
        }
        multiply_down(dq, ds, k, unit + 16 * step);
      }
    }
  }
};

}  // namespace

template <typename T>
void flash_attention_backward(kernels::Stream& stream, const AttentionBackward<T>& call) {
  const AttentionShape& shape = call.shape;
  AttentionBackward<T> arguments = call;
  const std::int64_t pair = 4 * std::int64_t{shape.sequence} * shape.head_size;
  with_width(shape.head_size, [&](auto width) {
    const auto start = [&](auto drops) {
      using Keys = FlashKeys<T, decltype(width)::value, decltype(drops)::value>;
      arguments.order =
          tile_order(shape, Keys::kKeys, shape.heads / shape.group, 1, pair * shape.group);
      LaunchShape keys = tiles_launch(arguments.order, Keys::kSharedBytes);
      keys.grid.x *= Keys::kParts;
      launch<Keys>(stream, keys, arguments);
      using Queries = FlashQueries<T, decltype(width)::value, decltype(drops)::value>;
      arguments.order = tile_order(shape, Queries::kQueries, shape.heads, shape.group, pair);
      launch<Queries>(stream, tiles_launch(arguments.order, Queries::kSharedBytes), arguments);
    };
    if (shape.drops)
      start(std::true_type());
    else
      start(std::false_type());
  });
}

template void flash_attention_backward<Bf16>(kernels::Stream&, const AttentionBackward<Bf16>&);
template void flash_attention_backward<Half>(kernels::Stream&, const AttentionBackward<Half>&);

}  // namespace strata::cuda
