#include "kernels/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/round_up.h"
#include "kernels/cpu/attention_task.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/layer_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/attention_tiles-inl.h"
#include "kernels/cpu/simd_targets.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// Maximum and sum per query so far, and the outputs [padded, kQ] before division by the sums.
struct Running {
  float *maximum, *sum, *out;
};

/// Masks, in one panel of a diagonal tile, the keys after each query.
void mask_panel(float* scores, std::int64_t column, std::int64_t keys) {
  for (std::int64_t row = column + 1; row < keys; ++row)
    for (std::int64_t lane = 0; lane < kTileColumns; lane += kWidth) {
      float* at = scores + row * kQ + lane;
      const V score = hn::LoadU(F(), at);
      hn::StoreU(hn::IfThenElse(sees(column + lane, row), score, all(kMinusInfinity)), F(), at);
    }
}

/// Replaces the scores of one vector of queries by exp(scale * score - maximum) and updates their
/// running maximum, sum and outputs.
void softmax_column(float* scores, std::int64_t keys, const AttentionShape& shape, bool first,
                    float* maximum, float* sum, float* out) {
  const F f;
  V most[4] = {all(kMinusInfinity), all(kMinusInfinity), all(kMinusInfinity), all(kMinusInfinity)};
  std::int64_t row = 0;
  for (; row + 4 <= keys; row += 4)
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < 4; ++i)
      most[i] = hn::Max(most[i], hn::LoadU(f, scores + (row + i) * kQ));
  for (; row < keys; ++row) most[0] = hn::Max(most[0], hn::LoadU(f, scores + row * kQ));
  const V scale = all(shape.scale);
  V largest = hn::Mul(hn::Max(hn::Max(most[0], most[1]), hn::Max(most[2], most[3])), scale);
  V total = hn::Zero(f);
  if (!first) {
    const V before = hn::LoadU(f, maximum);
    largest = hn::Max(largest, before);
    const V shrink = exp_lanes(hn::Sub(before, largest));
    total = hn::Mul(hn::LoadU(f, sum), shrink);
    for (std::int64_t d = 0; d < shape.padded; ++d)
      hn::StoreU(hn::Mul(hn::LoadU(f, out + d * kQ), shrink), f, out + d * kQ);
  }
  for (row = 0; row < keys; ++row) {
    const V p = exp_lanes(hn::MulSub(hn::LoadU(f, scores + row * kQ), scale, largest));
    hn::StoreU(p, f, scores + row * kQ);
    total = hn::Add(total, p);
  }
  hn::StoreU(largest, f, maximum);
  hn::StoreU(total, f, sum);
}

/// Drops out probabilities [keys, kWidth]; the first query and key have random block `block`.
void drop_column(float* scores, std::int64_t keys, const AttentionShape& shape,
                 const RandomSource& random, std::uint64_t block) {
  for (std::int64_t row = 0; row < keys; row += 4, ++block) {
    const PhiloxWords words = philox_lanes(random, block, shape.row_blocks);
    for (std::int64_t i = 0; i < 4 && row + i < keys; ++i) {
      float* at = scores + (row + i) * kQ;
      hn::StoreU(keep_lanes(words.word[i], shape.threshold, hn::LoadU(F(), at)), F(), at);
    }
  }
}

/// Adds what one tile of keys contributes. `keys` and `values` are [kK, padded].
void attend_tile(const AttentionForwardTask& task, const AttentionShape& shape,
                 const TilePlace& place, const float* q_transposed, const float* keys,
                 const float* values, float* scores, const Running& running) {
  const bool first = place.key == 0;
  for (std::int64_t column = 0; column < place.columns; column += kTileColumns) {
    const std::int64_t seen = place.keys_of(column);
    float* panel = scores + column;
    multiply_panel(keys, q_transposed + column, shape, seen, panel);
    if (place.diagonal()) mask_panel(panel, column, seen);
    for (std::int64_t at = column; at < column + kTileColumns; at += kWidth) {
      softmax_column(scores + at, seen, shape, first, running.maximum + at, running.sum + at,
                     running.out + at);
      if (shape.drops)
        drop_column(scores + at, seen, shape, task.random,
                    task.first_block +
                        static_cast<std::uint64_t>(place.query + at) * shape.row_blocks +
                        static_cast<std::uint64_t>(place.key / 4));
    }
    for (std::int64_t d = 0; d < shape.padded; d += kTileRows)
      multiply_tile(seen, {values + d, 1, shape.padded}, panel, kQ, running.out + d * kQ + column,
                    kQ, !first);
  }
}

/// Divides by the sums and writes outputs and log-sum-exp. `tile` is scratch [kQ, padded].
void finish_queries(const AttentionForwardTask& task, const AttentionShape& shape,
                    const TilePlace& place, const Running& running, float* tile) {
  for (std::int64_t column = 0; column < place.columns; column += kWidth) {
    const V factor = hn::Div(all(shape.keep_scale), hn::LoadU(F(), running.sum + column));
    for (std::int64_t d = 0; d < shape.padded; ++d) {
      float* at = running.out + d * kQ + column;
      hn::StoreU(hn::Mul(hn::LoadU(F(), at), factor), F(), at);
    }
  }
  transpose(running.out, shape.padded, round_up(place.columns, 4), kQ, tile, shape.padded);
  store_tile(tile, shape, place.query, place.columns, task.o);
  const std::int64_t last = std::min(place.columns, shape.sequence - place.query);
  for (std::int64_t i = 0; i < last; ++i)
    task.lse[place.query + i] = static_cast<float>(static_cast<double>(running.maximum[i]) +
                                                   std::log(static_cast<double>(running.sum[i])));
}

/// Attends with queries [first_query, last_query) of one head, tile by tile, to all keys they see.
void attend(const AttentionForwardTask& task, const AttentionShape& shape, float* scratch) {
  const std::int64_t tile = kQ * shape.padded;
  float *tile_rows = scratch, *q_transposed = scratch + tile, *out = scratch + 2 * tile;
  float *scores = scratch + 3 * tile, *keys = scores + kK * kQ + 2 * kQ;
  const std::int64_t seen = round_up(task.last_query, kK);
  float* values = keys + seen * shape.padded;
  const Running running{scores + kK * kQ, scores + kK * kQ + kQ, out};
  load_tile(task.k, shape, 0, seen, keys);
  load_tile(task.v, shape, 0, seen, values);
  for (std::int64_t query = task.first_query; query < task.last_query; query += kQ) {
    load_tile(task.q, shape, query, kQ, tile_rows);
    transpose(tile_rows, kQ, shape.padded, shape.padded, q_transposed, kQ);
    for (std::int64_t key = 0; key <= query; key += kK)
      attend_tile(task, shape, TilePlace(shape, query, key), q_transposed,
                  keys + key * shape.padded, values + key * shape.padded, scores, running);
    finish_queries(task, shape, TilePlace(shape, query, query), running, tile_rows);
  }
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
HWY_EXPORT(attend);

AttentionShape attention_shape(const Attributes& attributes, std::int64_t head_size) {
  AttentionShape shape{};
  shape.sequence = attributes.integer("sequence");
  shape.head_size = head_size;
  shape.padded = (head_size + 31) / 32 * 32;
  shape.scale = static_cast<float>(attributes.real("scale"));
  const double p = attributes.real("p", 0);
  shape.drops = p > 0;
  shape.threshold = dropout_threshold(p);
  shape.keep_scale = dropout_scale(p);
  shape.row_blocks = static_cast<std::uint32_t>((shape.sequence + 3) / 4);
  return shape;
}

RandomSource attention_random(const KernelCall& call, const AttentionShape& shape,
                              std::int64_t sample) {
  if (!shape.drops) return {0, 0, 0, 0};
  return random_source(call.inputs.back().row<std::int64_t>(), sample, 1,
                       call.attributes.integer("key"));
}

namespace {
constexpr std::int64_t kManyHeads = 32;
}

void attention_kernel(Stream& stream, const KernelCall& call) {
  const Tensor &q = call.inputs[0], &k = call.inputs[1], &v = call.inputs[2];
  const Tensor &o = call.outputs[0], &lse = call.outputs[1];
  const std::int64_t heads = q.type.shape[1], group = heads / k.type.shape[1];
  const AttentionShape shape = attention_shape(call.attributes, q.type.shape[2]);
  const std::int64_t batch = q.rows() / shape.sequence;
  // Each head is one task if there are many heads, so that its keys are read once; else each of its
  // tiles of queries is a task.
  const std::int64_t span = batch * heads >= kManyHeads ? shape.sequence : kAttentionQueries;
  const std::int64_t spans = divide_up(shape.sequence, span);
  const std::int64_t scratch_floats = attention_scratch_floats(shape.sequence, shape.head_size);
  ThreadPool& pool = cpu(stream).pool();
  STRATA_CHECK(call.workspace.size() >= static_cast<std::size_t>(scratch_floats) * sizeof(float) *
                                            static_cast<std::size_t>(pool.threads()));

  pool.parallel_for(batch * heads * spans, [&](std::int64_t index, int worker) {
    const std::int64_t first = (spans - 1 - index % spans) * span;  // longest first
    const std::int64_t head = index / spans % heads, sample = index / spans / heads;
    const std::int64_t row = sample * shape.sequence;
    const AttentionForwardTask task{
        {q, row, head},
        {k, row, head / group},
        {v, row, head / group},
        {o, row, head},
        lse.row<float>(sample) + head * shape.sequence,
        first,
        std::min(shape.sequence, first + span),
        attention_random(call, shape, sample),
        static_cast<std::uint64_t>(head * shape.sequence) * shape.row_blocks};
    auto* scratch = reinterpret_cast<float*>(call.workspace.data()) + worker * scratch_floats;
    HWY_DYNAMIC_DISPATCH(attend)(task, shape, scratch);
  });
}

}  // namespace strata::kernels
#endif
