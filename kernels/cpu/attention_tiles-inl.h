// Helpers that attention's forward and backward passes share. Scores of a tile are kept transposed,
// [keys, queries]: maximum, sum and scaling per query then run along vectors of queries, and both
// factors of every product are read in the order in which they lie in memory.

#if defined(STRATA_KERNELS_CPU_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_ATTENTION_TILES_INL_H_
#undef STRATA_KERNELS_CPU_ATTENTION_TILES_INL_H_
#else
#define STRATA_KERNELS_CPU_ATTENTION_TILES_INL_H_
#endif

#include "core/round_up.h"
#include "hwy/cache_control.h"
#include "kernels/cpu/attention_task.h"
#include "kernels/cpu/convert-inl.h"
#include "kernels/cpu/math-inl.h"
#include "kernels/cpu/philox-inl.h"
#include "kernels/cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {

constexpr std::int64_t kQ = kAttentionQueries, kK = kAttentionKeys;
constexpr std::int64_t kWidth = static_cast<std::int64_t>(kLanes);
static_assert(kQ == kK && kQ % kTileColumns == 0, "the diagonal runs through whole tiles");

/// Prefetches row `t` of a head. Between two rows of a head lie those of all other heads, so that
/// each may be on its own page: too far for the hardware's prefetcher.
HWY_INLINE void prefetch_row(const HeadRows& head, const AttentionShape& shape, std::int64_t t) {
  if (t >= shape.sequence) return;
  const std::int64_t bytes = shape.head_size * size_of(head.type);
  for (std::int64_t at = 0; at < bytes; at += 64) hwy::Prefetch(head.row(t) + at);
}

/// Loads rows [first, first + count) of a head as fp32 [count, padded]; zero outside the sequence
/// and beyond the head size.
HWY_NOINLINE HWY_MAYBE_UNUSED inline void load_tile(const HeadRows& head,
                                                    const AttentionShape& shape, std::int64_t first,
                                                    std::int64_t count, float* to) {
  constexpr std::int64_t kAhead = 16;
  for (std::int64_t t = first; t < first + kAhead; ++t) prefetch_row(head, shape, t);
  for (std::int64_t t = first; t < first + count; ++t, to += shape.padded) {
    prefetch_row(head, shape, t + kAhead);
    const std::int64_t valid = t < shape.sequence ? shape.head_size : 0;
    if (valid > 0) load_row(head.row(t), head.type, to, valid);
    std::fill(to + valid, to + shape.padded, 0.0f);
  }
}

HWY_NOINLINE HWY_MAYBE_UNUSED inline void store_tile(const float* from, const AttentionShape& shape,
                                                     std::int64_t first, std::int64_t count,
                                                     const HeadRows& head) {
  const std::int64_t last = std::min(first + count, shape.sequence);
  for (std::int64_t t = first; t < last; ++t, from += shape.padded)
    store_row(from, head.row(t), head.type, shape.head_size);
}

/// One tile's place: queries [query, query + columns) by keys [key, key + kK).
struct TilePlace {
  std::int64_t query, key;
  std::int64_t columns;  ///< queries that exist, rounded up to register tiles

  TilePlace(const AttentionShape& shape, std::int64_t first_query, std::int64_t first_key)
      : query(first_query),
        key(first_key),
        columns(std::min(kQ, round_up(shape.sequence - first_query, kTileColumns))) {}
  [[nodiscard]] bool diagonal() const { return query == key; }
  /// Keys that queries [column, column + kTileColumns) may see, rounded up to register tiles.
  [[nodiscard]] std::int64_t keys_of(std::int64_t column) const {
    return diagonal() ? column / kTileColumns * kTileColumns + kTileColumns : kK;
  }
  /// First query of the register tile that sees key `row`.
  [[nodiscard]] std::int64_t first_query_of(std::int64_t row) const {
    return diagonal() ? row / kTileColumns * kTileColumns : 0;
  }
};

/// Computes scores [keys, kTileColumns] as rows of `left` [keys, D] by a column panel of [D, kQ].
HWY_INLINE void multiply_panel(const float* left, const float* transposed,
                               const AttentionShape& shape, std::int64_t keys, float* scores) {
  for (std::int64_t row = 0; row < keys; row += kTileRows)
    multiply_tile(shape.head_size, {left + row * shape.padded, shape.padded, 1}, transposed, kQ,
                  scores + row * kQ, kQ, false);
}

/// Returns the lanes, of queries from `column` on, that see key `row` of a diagonal tile.
HWY_INLINE hn::Mask<F> sees(std::int64_t column, std::int64_t row) {
  const V query = hn::Iota(F(), static_cast<float>(column));
  return hn::Ge(query, all(static_cast<float>(row)));
}

}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
