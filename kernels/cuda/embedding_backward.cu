// Implements embedding_backward of kernels/ops/embedding.h on CUDA, with the same bits in any order
// of threads. Keys (id, row) are sorted, which has only one result, and cut into tiles. The rows of
// one token in a tile are added in order, then the tiles' sums of a token that spans tiles. The
// division of work does not depend on how often each token occurs.
//
// Memory is the bound: dx is read once, and one row of the table is read and written per token that
// occurs; keys and partial sums are few bytes in comparison.
#include "core/check.h"
#include "kernels/cuda/any_floats.cuh"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/cuda/token_tiles.h"
#include "kernels/ops/embedding.h"

namespace strata::cuda {
namespace {

using Key = std::uint64_t;  ///< id << 32 | row; no two keys are equal

STRATA_DEVICE std::int64_t id_of(Key key) { return static_cast<std::int64_t>(key >> 32); }
STRATA_DEVICE std::int64_t row_of(Key key) { return static_cast<std::int64_t>(key & 0xFFFFFFFFu); }

/// The new place of key `i` when each pair of neighbouring sorted runs of `run` keys is merged: it
/// comes after the keys before it in its own run, and after the smaller keys of the other run.
template <typename Index>
STRATA_DEVICE Index merged_place(const Key* keys, Index i, Index run, Index count) {
  const Index pair = i / (2 * run) * (2 * run);
  const Index middle = std::min(pair + run, count);
  const bool in_first = i < middle;
  Index low = in_first ? middle : pair;
  Index high = in_first ? std::min(pair + 2 * run, count) : middle;
  const Index others = low;
  while (low < high) {
    const Index half = low + (high - low) / 2;
    if (keys[half] < keys[i])
      low = half + 1;
    else
      high = half;
  }
  return pair + (in_first ? i - pair : i - middle) + (low - others);
}

struct RunArguments {
  const std::int32_t* ids;
  std::int64_t rows, vocabulary;
  Key* keys;
};

/// Makes the keys, each block a sorted run of kRun of them.
struct SortRuns {
  static constexpr int kThreads = 512;
  static constexpr int kRun = 2048;
  static constexpr std::int64_t kSharedBytes = 2 * kRun * sizeof(Key);

  static STRATA_DEVICE void run(const RunArguments& a) {
    auto* from = reinterpret_cast<Key*>(shared_memory());
    Key* to = from + kRun;
    const std::int64_t first = std::int64_t{block().x} * kRun;
    const int count = static_cast<int>(std::min<std::int64_t>(kRun, a.rows - first));
    for (int i = thread(); i < count; i += kThreads) {
      const std::int32_t id = a.ids[first + i];
      require(id >= 0 && id < a.vocabulary);
      from[i] = static_cast<Key>(id) << 32 | static_cast<Key>(first + i);
    }
    for (int run = 1; run < count; run *= 2) {
      sync_block();
      for (int i = thread(); i < count; i += kThreads)
        to[merged_place(from, i, run, count)] = from[i];
      Key* const sorted = to;
      to = from;
      from = sorted;
    }
    sync_block();
    for (int i = thread(); i < count; i += kThreads) a.keys[first + i] = from[i];
  }
};

struct MergeArguments {
  const Key* from;
  Key* to;
  std::int64_t run, count;
};

struct MergeRuns {
  static constexpr int kThreads = 256;
  static STRATA_DEVICE void run(const MergeArguments& a) {
    const std::int64_t i = std::int64_t{block().x} * kThreads + thread();
    if (i < a.count) a.to[merged_place(a.from, i, a.run, a.count)] = a.from[i];
  }
};

template <typename A>
struct TileArguments {
  RowPointer<const A> dx;
  std::int64_t columns;
  const Key* keys;  ///< sorted
  TokenTiles tiles;
  float* partial;
  AnyFloats table;

  [[nodiscard]] STRATA_DEVICE float* partial_sum(std::int64_t tile, int which) const {
    return partial + (tile * 2 + which) * tiles.stride;
  }
};

/// Adds `sum` to the row of token `id`.
template <int N>
STRATA_DEVICE void add_to_row(const AnyFloats& table, std::int64_t id, std::int64_t column,
                              const float (&sum)[N]) {
  const std::int64_t at = id * table.stride + column;
  float row[N];
  read_floats(row, table, at);
#pragma unroll
  for (int i = 0; i < N; ++i) row[i] += sum[i];
  write_floats(table, at, row);
}

/// Adds up the rows of each token in tile block().x; a thread takes one pack of columns. Sums of
/// tokens that span tiles are partial: number 0 if it began in a tile before, 1 if it begins here.
template <typename A, int N>
struct AddTile {
  static constexpr int kThreads = 128;
  static constexpr int kBatch = 8;  ///< packs under way
  static_assert(kTileRows % kBatch == 0);

  static STRATA_DEVICE void run(const TileArguments<A>& a) {
    const std::int64_t column = (std::int64_t{block().y} * kThreads + thread()) * N;
    if (column >= a.columns) return;
    const std::int64_t tile = block().x, first = tile * kTileRows;
    const std::int64_t last = std::min(first + kTileRows, a.tiles.rows);
    // The ids just before and after the tile; -1 if there is none.
    const std::int64_t before = first > 0 ? id_of(a.keys[first - 1]) : -1;
    const std::int64_t after = last < a.tiles.rows ? id_of(a.keys[last]) : -1;
    bool from_before = id_of(a.keys[first]) == before;
    float sum[N] = {};
#pragma unroll 1
    for (std::int64_t i = first; i < last; i += kBatch) {
      Key keys[kBatch];
      Pack<A, N> packs[kBatch];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        keys[j] = a.keys[std::min(i + j, last - 1)];
        packs[j] = load<N>(a.dx.data + row_of(keys[j]) * a.dx.stride + column);
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        if (i + j >= last) continue;
#pragma unroll
        for (int n = 0; n < N; ++n) sum[n] += to_float(packs[j].v[n]);
        const bool at_end = i + j + 1 == last;
        const std::int64_t id = id_of(keys[j]);
        const std::int64_t next = at_end ? after : id_of(a.keys[i + j + 1]);
        if (id == next && !at_end) continue;
        if (from_before)
          write_as(a.partial_sum(tile, 0) + column, sum);
        else if (id == next)
          write_as(a.partial_sum(tile, 1) + column, sum);
        else
          add_to_row(a.table, id, column, sum);
        from_before = false;
#pragma unroll
        for (int n = 0; n < N; ++n) sum[n] = 0;
      }
    }
  }
};

/// Adds up the partial sums of the token, if any, that begins in tile block().x and goes on after.
template <typename A, int N>
struct JoinTiles {
  static constexpr int kThreads = 128;
  static constexpr int kBatch = 4;

  static STRATA_DEVICE void run(const TileArguments<A>& a) {
    const std::int64_t column = (std::int64_t{block().y} * kThreads + thread()) * N;
    const std::int64_t tile = block().x, first = tile * kTileRows, last = first + kTileRows;
    if (column >= a.columns || last >= a.tiles.rows) return;
    const std::int64_t id = id_of(a.keys[last - 1]);
    const bool goes_on = id_of(a.keys[last]) == id;
    const bool from_before = first > 0 && id_of(a.keys[first - 1]) == id;
    if (!goes_on || from_before) return;
    float sum[N];
    read_as(sum, a.partial_sum(tile, 1) + column);
    bool more = true;
#pragma unroll 1
    for (std::int64_t next = tile + 1; more; next += kBatch) {
      bool here[kBatch];
      float partial[kBatch][N];
#pragma unroll
      for (int j = 0; j < kBatch; ++j) {
        const std::int64_t at = std::min(next + j, a.tiles.count - 1);
        here[j] = next + j < a.tiles.count && id_of(a.keys[at * kTileRows]) == id;
        read_as(partial[j], a.partial_sum(at, 0) + column);
      }
#pragma unroll
      for (int j = 0; j < kBatch; ++j)
        if (here[j])
#pragma unroll
          for (int n = 0; n < N; ++n) sum[n] += partial[j][n];
      more = here[kBatch - 1];
    }
    add_to_row(a.table, id, column, sum);
  }
};

/// Returns the sorted keys, which lie in arguments.keys or in `other`.
const Key* sort_keys(kernels::Stream& stream, RunArguments arguments, Key* other) {
  const auto blocks = [&](std::int64_t of) {
    return static_cast<std::uint32_t>((arguments.rows + of - 1) / of);
  };
  launch<SortRuns>(stream, {{blocks(SortRuns::kRun), 1, 1}, SortRuns::kSharedBytes}, arguments);
  Key *from = arguments.keys, *to = other;
  for (std::int64_t run = SortRuns::kRun; run < arguments.rows; run *= 2) {
    launch<MergeRuns>(stream, {{blocks(MergeRuns::kThreads), 1, 1}, 0},
                      MergeArguments{from, to, run, arguments.rows});
    std::swap(from, to);
  }
  return from;
}

/// Fills the table with the existing gradient, unless it is there already, or with zeros.
void start_table(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor& table = call.outputs[0];
  if (call.inputs.size() < 3) return fill_rows(stream, table);
  const kernels::Tensor& existing = call.inputs[2];
  if (existing.data != table.data)
    copy(stream, {{&existing, 1}, call.outputs, {}, call.attributes});
}

}  // namespace

void embedding_backward(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &ids = call.inputs[0], &dx = call.inputs[1], &table = call.outputs[0];
  start_table(stream, call);
  const TokenTiles tiles = token_tiles(dx.type.shape);
  if (tiles.count == 0) return;
  STRATA_CHECK(static_cast<std::int64_t>(call.workspace.size()) >= tiles.bytes());
  auto* keys = reinterpret_cast<Key*>(call.workspace.data());
  auto* other = reinterpret_cast<Key*>(call.workspace.data() + tiles.keys_bytes());
  auto* partial = reinterpret_cast<float*>(call.workspace.data() + 2 * tiles.keys_bytes());
  const Key* sorted =
      sort_keys(stream, {ids.row<const std::int32_t>(), tiles.rows, table.rows(), keys}, other);
  with_float_type(dx.dtype(), [&](auto element) {
    using A = decltype(element);
    constexpr int kWide = pack_elements(sizeof(A));
    const bool fits =
        packs_fit(kWide, {dx.rows(), dx.cols()}, {&dx}) && any_packs_fit(kWide, table);
    with_width<kWide>(fits, [&](auto width) {
      constexpr std::int64_t kColumns = std::int64_t{AddTile<A, width()>::kThreads} * width();
      const auto across = static_cast<std::uint32_t>((dx.cols() + kColumns - 1) / kColumns);
      const LaunchShape shape{{static_cast<std::uint32_t>(tiles.count), across, 1}, 0};
      const TileArguments<A> arguments{rows_of<const A>(dx), dx.cols(), sorted, tiles, partial,
                                       any_floats(table)};
      launch<AddTile<A, width()>>(stream, shape, arguments);
      if (tiles.count > 1) launch<JoinTiles<A, width()>>(stream, shape, arguments);
    });
  });
}

}  // namespace strata::cuda
