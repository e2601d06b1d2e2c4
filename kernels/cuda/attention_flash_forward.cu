// Forward pass of attention on tensor cores.
#include <limits>
#include <type_traits>

#include "kernels/cuda/attention_flash.cuh"

namespace strata::cuda {
namespace {

constexpr float kLowest = -std::numeric_limits<float>::infinity();
/// The most that scores may lie above their row's reference (Rows::largest), in units of ln 2,
/// before it is raised. Weights up to 2^8 are as exact in 16 bits as those up to 1.
constexpr float kFar = 8;
constexpr float kLn2 = 0.6931471805599453f;

template <typename T, int kWidth, bool kDrops>
struct FlashForward {
  static constexpr int kThreads = kFlashThreads;
  static constexpr int kM = kWidth <= 128 ? 2 : 1;
  static constexpr int kRows = 16 * kM;  // queries of a warp
  static constexpr int kQueries = kRows * kFlashWarps;
  // Fewer keys at a time with dropout, whose random numbers need registers, too.
  static constexpr int kKeys = kWidth == 128 && kDrops ? 32 : 64;
  static constexpr int kN = kKeys / 8, kOutN = kWidth / 8;
  static constexpr int kRowBytes = 2 * kWidth;
  static constexpr std::int64_t kSharedBytes = (kQueries + 2 * kKeys) * kRowBytes;
  static_assert(kSharedBytes <= kSharedBytesEverywhere);
  using Tile = HeadTile<T, kWidth>;

  /// The state of each row of which this thread holds a part: the reference, a former maximum of
  /// the scores in units of ln 2, and this thread's part of the sum of exponentials.
  struct Rows {
    float largest[kM][2], total[kM][2];
  };

  static STRATA_DEVICE void run(const AttentionForward<T>& x) {
    const AttentionShape& shape = x.shape;
    const TilePlace place = tile_place(x.order, block().x);
    const int first_query = (static_cast<int>(x.order.tiles) - 1 - place.tile) * kQueries;
    const std::int64_t row = std::int64_t{place.sample} * shape.sequence;
    const int key_head = place.head / shape.group;
    const T* q = x.q.head(row, place.head, shape.head_size);
    const T* k = Tile::source(x.k, x.k.head(row, key_head, shape.head_size), 0);
    const T* v = Tile::source(x.v, x.v.head(row, key_head, shape.head_size), 0);
    const HeadDropout dropout =
        kDrops ? uniform_dropout(shape, place.sample, place.head) : HeadDropout();
    const Tile q_tile{shared_memory()}, k_tile{shared_memory() + kQueries * kRowBytes},
        v_tile{shared_memory() + (kQueries + kKeys) * kRowBytes};
    const int warp_row = uniform(warp()) * kRows, query = first_query + warp_row;
    const int last_query =
        first_query + kQueries <= shape.sequence ? first_query + kQueries - 1 : shape.sequence - 1;

    const float scale = shape.scale * kLog2E;
    Fragments<kM, kOutN> out;
    clear(out);
    Rows rows;
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) rows.largest[m][half] = kLowest, rows.total[m][half] = 0;

    q_tile.template fetch<kQueries>(Tile::source(x.q, q, first_query), x.q.stride, first_query,
                                    shape);
    k_tile.template fetch<kKeys>(k, x.k.stride, 0, shape);
    copy_async_commit();
    for (int key = 0; key <= last_query; key += kKeys) {
      // A warp has work if its last query sees the tile's first key. Then all its queries do, since
      // both begin at multiples of the smaller of 16 kM and kKeys.
      const bool works = key <= query + kRows - 1 && query < shape.sequence;
      copy_async_wait<0>();
      sync_block();  // K has arrived, and nobody reads V any more
      v_tile.template fetch<kKeys>(v, x.v.stride, key, shape);
      v += kKeys * x.v.stride;
      copy_async_commit();
      Fragments<kM, kN> scores;
      clear(scores);
      if (works) multiply_rows(scores, q_tile, warp_row, k_tile, 0);
      copy_async_wait<0>();
      sync_block();  // V has arrived, and nobody reads K any more
      if (key + kKeys <= last_query) {
        k += kKeys * x.k.stride;
        k_tile.template fetch<kKeys>(k, x.k.stride, key + kKeys, shape);
        copy_async_commit();
      }
      if (!works) continue;
      if (key + kKeys - 1 > query) hide_future(scores, query, key);
      raise(scale, scores, rows, out);
#pragma unroll
      for (int step = 0; step < kKeys / 16; ++step) {
        LeftFragments<kM> weights;
#pragma unroll
        for (int m = 0; m < kM; ++m)
          weigh(scale, scores[m], step, rows.largest[m], rows.total[m], dropout, query + 16 * m,
                key + 16 * step, weights[m]);
        multiply_down(out, weights, v_tile, 16 * step);
      }
    }
    if (query >= shape.sequence) return;
    float* lse = x.lse.head(place.sample, place.head, shape.sequence);
    divide(shape, rows, out, lse, query);
    // Only this warp read its rows of queries, and it is done with them: they are scratch.
    store_fragments(out, shared_memory() + warp_row * kRowBytes,
                    x.o.head(row, place.head, shape.head_size), x.o.stride, query, 0, shape);
  }

  static STRATA_DEVICE void hide_future(Fragments<kM, kN>& scores, int query, int key) {
    const int ahead = fragment_column(0, 0) + key - (fragment_row(0, 0) + query);
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int n = 0; n < kN; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (ahead > 16 * m + e / 2 * 8 - 8 * n - e % 2) scores[m][n][e] = kLowest;
  }

  /// Raises the references of a warp's queries to the maxima of their scores, and scales sums and
  /// outputs to match, if a score lies more than kFar above. Most tiles need no scaling.
  static STRATA_DEVICE void raise(float scale, const Fragments<kM, kN>& scores, Rows& rows,
                                  Fragments<kM, kOutN>& out) {
    float most[kM][2];
    bool far = false;
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float x = kLowest;
#pragma unroll
        for (int n = 0; n < kN; ++n)
          x = fmaxf(x, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
        x = fmaxf(x, shuffle_xor(x, 1));
        x = fmaxf(x, shuffle_xor(x, 2));
        most[m][half] = x * scale;
        far = far || !(most[m][half] <= rows.largest[m][half] + kFar);
      }
    if (ballot(far) == 0) return;
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float now = fmaxf(rows.largest[m][half], most[m][half]);
        const float shrink = exp2_fast(rows.largest[m][half] - now);
        rows.largest[m][half] = now;
        rows.total[m][half] *= shrink;
#pragma unroll
        for (int n = 0; n < kOutN; ++n)
#pragma unroll
          for (int e = 2 * half; e < 2 * half + 2; ++e) out[m][n][e] *= shrink;
      }
  }

  /// Makes the weights 2^(score * scale - largest) of 16 queries and the 16 keys from `key` on,
  /// whose scores are fragments 2 step and 2 step + 1. `total` includes what dropout takes away.
  static STRATA_DEVICE void weigh(float scale, const float (&scores)[kN][4], int step,
                                  const float (&largest)[2], float (&total)[2],
                                  const HeadDropout& dropout, int query, int key,
                                  std::uint32_t (&weights)[4]) {
    float p[2][4];
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        p[n][e] = exp2_fast(fmaf(scores[2 * step + n][e], scale, -largest[e / 2]));
        total[e / 2] += p[n][e];
      }
    if constexpr (kDrops) {
      const std::uint32_t keep = keep_queries<2>(dropout, query, key);
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if ((keep >> (4 * n + e) & 1) == 0) p[n][e] = 0;
    }
    round_fragment<T>(weights, p);
  }

  /// Divides the outputs by their rows' sums, and writes the log-sum-exp.
  static STRATA_DEVICE void divide(const AttentionShape& shape, const Rows& rows,
                                   Fragments<kM, kOutN>& out, float* lse, int query) {
#pragma unroll
    for (int m = 0; m < kM; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float total = rows.total[m][half];
        total += shuffle_xor(total, 1);
        total += shuffle_xor(total, 2);
        const float factor = shape.keep_scale / total;
#pragma unroll
        for (int n = 0; n < kOutN; ++n)
          out[m][n][2 * half] *= factor, out[m][n][2 * half + 1] *= factor;
        const int at = query + fragment_row(m, 2 * half);
        if (lane() % 4 == 0 && at < shape.sequence)
          lse[at] = fmaf(rows.largest[m][half], kLn2, logf(total));
      }
  }
};

}  // namespace

template <typename T>
void flash_attention(kernels::Stream& stream, const AttentionForward<T>& call) {
  const AttentionShape& shape = call.shape;
  AttentionForward<T> arguments = call;
  with_width(shape.head_size, [&](auto width) {
    const auto start = [&](auto drops) {
      using Body = FlashForward<T, decltype(width)::value, decltype(drops)::value>;
      arguments.order = tile_order(shape, Body::kQueries, shape.heads, shape.group,
                                   4 * std::int64_t{shape.sequence} * shape.head_size);
      launch<Body>(stream, tiles_launch(arguments.order, Body::kSharedBytes), arguments);
    };
    if (shape.drops)
      start(std::true_type());
    else
      start(std::false_type());
  });
}

template void flash_attention<Bf16>(kernels::Stream&, const AttentionForward<Bf16>&);
template void flash_attention<Half>(kernels::Stream&, const AttentionForward<Half>&);

}  // namespace strata::cuda
