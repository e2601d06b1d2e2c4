// Implements norm_backward of kernels/ops/norm.h on CUDA. A block processes one chunk of vectors
// and keeps its sums for dweight and dbias in registers; a second kernel adds the chunks' sums in
// order. Vectors of up to 8,192 elements stay in registers, too: dy, x and dsum are read once, and
// dx is written once. An element of 16 bits takes 6 bytes, 8 with dsum, at most 0.5 more for the
// chunks' sums, which the cache holds, and some 33 instructions; the memory of an H200 leaves time
// for 37, or 49 with dsum.
#include <cmath>

#include "core/check.h"
#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/norm.cuh"
#include "kernels/cuda/norm_chunks.h"
#include "kernels/ops/norm.h"

namespace strata::cuda {
namespace {

template <typename T>
struct BackwardArguments {
  VectorShape shape;
  RowPointer<const T> dy, x, dsum;  ///< dsum may be null
  RowPointer<const float> stats;
  AnyFloats weight;
  RowPointer<T> dx;  ///< may be dy
  bool rms = false, biased = false;
  NormChunks chunks;
  float* partial = nullptr;  ///< [chunks, 1 or 2, stride]: sums for dweight and, if biased, dbias

  [[nodiscard]] STRATA_DEVICE float* partial_sums(std::int64_t chunk, int output) const {
    return partial + (chunk * (biased ? 2 : 1) + output) * chunks.stride;
  }
};

/// The mean of a vector (zero for RMS) and 1 / deviation.
struct NormStats {
  float mean, scale;
  [[nodiscard]] STRATA_DEVICE float normal(float x) const { return (x - mean) * scale; }
};

template <typename T>
STRATA_DEVICE NormStats read_stats(const BackwardArguments<T>& a, const VectorPlace& place) {
  const float* stats = place.in(a.stats, 2);
  return {stats[0], stats[1]};
}

/// The means over a vector of g = dy * weight (0 for RMS) and of g times the normalized x.
struct NormMeans {
  float g, slope;

  template <typename T>
  STRATA_DEVICE NormMeans(const BackwardArguments<T>& a, const float (&sums)[2])
      : g(a.rms ? 0.0f : sums[0] / static_cast<float>(a.shape.columns)),
        slope(sums[1] / static_cast<float>(a.shape.columns)) {}
  /// Returns (of_g - mean of g - normal * mean of g * normal) / deviation + dsum.
  [[nodiscard]] STRATA_DEVICE float dx(float of_g, float normal, float scale, float dsum) const {
    return std::fma(std::fma(-normal, slope, of_g - g), scale, dsum);
  }
};

template <typename T, typename Group, bool kBiased>
struct HeldBackward {
  static constexpr int kThreads = Group::kThreads;
  static constexpr int kWidth = Group::kWidth, kUnits = Group::kUnits;
  using Unit = Pack<T, kWidth>;
  using Sums = float[kUnits][kWidth];
  static constexpr int kRegisters =
      kUnits * kWidth * (kBiased ? 2 : 1) + kUnits * 4 * 3 + 56;  // sums, operands, the rest
  // Two blocks of 256 threads fit with 128 registers each, which is enough for 16-bit operands
  // without bias.
  static constexpr int kFewestBlocks =
      kThreads == 256 && sizeof(T) == 2 && !kBiased && Group::kWide ? 2 : 1;
  static constexpr int kLeastBlocks =
      Group::kWide ? std::max(kFewestBlocks, blocks_of_registers(kThreads, kRegisters)) : 1;

  /// The bytes of shared memory: a vector of sums per group or, for a block, two sets of slots in
  /// turn, as the barrier of a vector's sums comes after reads of the sums two vectors before.
  static std::int64_t shared_bytes(const NormChunks& chunks) {
    if constexpr (Group::kPerBlock == 1) return 4 * Group::kSlots * std::int64_t{sizeof(float)};
    return Group::kPerBlock * chunks.stride * std::int64_t{sizeof(float)};
  }

  static STRATA_DEVICE void store_sums(float* to, const Sums& sums, int columns) {
#pragma unroll
    for (int k = 0; k < kUnits; ++k) {
      const int column = Group::column(k);
      if (column < columns) write_as(to + column, sums[k]);
    }
  }

  /// Adds the sums of the block's groups in order, and writes them as those of the chunk.
  static STRATA_DEVICE void finish(const BackwardArguments<T>& a, int output, const Sums& sums) {
    const int columns = static_cast<int>(a.shape.columns);
    float* to = a.partial_sums(block().x, output);
    if constexpr (Group::kPerBlock == 1) {
      store_sums(to, sums, columns);
    } else {
      auto* shared = reinterpret_cast<float*>(shared_memory());
      sync_block();  // all threads have read the sums of the other output
      store_sums(shared + Group::group() * a.chunks.stride, sums, columns);
      sync_block();
      for (int c = thread(); c < columns; c += kThreads) {
        float sum = shared[c];
#pragma unroll
        for (int g = 1; g < Group::kPerBlock; ++g) sum += shared[g * a.chunks.stride + c];
        to[c] = sum;
      }
    }
  }

  static STRATA_DEVICE void run(const BackwardArguments<T>& a) {
    Sums dweight = {}, dbias = {};
    auto* slots = reinterpret_cast<float*>(shared_memory());
    int turn = 0;
    const std::int64_t first = std::int64_t{block().x} * a.chunks.vectors;
    const auto vectors = static_cast<int>(std::min(a.chunks.vectors, a.shape.count - first));
    const bool adds = a.dsum.data != nullptr;
#pragma unroll 1
    for (int i = Group::group(); i - Group::group() < vectors; i += Group::kPerBlock, turn ^= 1) {
      // Groups after the last vector take part in their warp's shuffles with no columns.
      const int columns = i < vectors ? static_cast<int>(a.shape.columns) : 0;
      const VectorPlace place = vector_place(a.shape, first + i);
      Unit dy[kUnits], x[kUnits], dsum[kUnits];
      NormStats stats{0, 0};
      if (columns > 0) {
        const T* from_dy = place.in(a.dy, a.shape.columns);
        const T* from_x = place.in(a.x, a.shape.columns);
#pragma unroll
        for (int k = 0; k < kUnits; ++k) {
          const int column = Group::column(k);
          if (column >= columns) continue;
          dy[k] = Group::read(from_dy, column, columns);
          x[k] = Group::read(from_x, column, columns);
          dsum[k] = adds ? Group::read(place.in(a.dsum, a.shape.columns), column, columns) : Unit{};
        }
        stats = read_stats(a, place);
      }

      float sums[2] = {};
#pragma unroll
      for (int k = 0; k < kUnits; ++k) {
        const int column = Group::column(k);
        if (column >= columns) continue;
        float weight[kWidth], d[kWidth], normal[kWidth];
        Group::read_parameters(weight, a.weight, column, columns);
        to_floats(d, dy[k]);
        to_floats(normal, x[k]);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) {
          // dy and the weight are zero after the end of the vector.
          normal[j] = stats.normal(normal[j]);
          const float g = d[j] * weight[j];
          sums[0] += g;
          sums[1] = std::fma(g, normal[j], sums[1]);
          dweight[k][j] = std::fma(d[j], normal[j], dweight[k][j]);
          if constexpr (kBiased) dbias[k][j] += d[j];
        }
      }
      sum_group<Group::kSize>(sums, slots + turn * 2 * Group::kSlots);
      const NormMeans means(a, sums);

#pragma unroll
      for (int k = 0; k < kUnits; ++k) {
        const int column = Group::column(k);
        if (column >= columns) continue;
        float weight[kWidth], d[kWidth], normal[kWidth], dx[kWidth];
        Group::read_parameters(weight, a.weight, column, columns);
        to_floats(d, dy[k]);
        to_floats(normal, x[k]);
        to_floats(dx, dsum[k]);
#pragma unroll
        for (int j = 0; j < kWidth; ++j)
          dx[j] = means.dx(d[j] * weight[j], stats.normal(normal[j]), stats.scale, dx[j]);
        Group::write(place.in(a.dx, a.shape.columns), column, columns, to_pack<T>(dx));
      }
    }
    finish(a, 0, dweight);
    if constexpr (kBiased) finish(a, 1, dbias);
  }
};

/// Computes dx of one vector that is too long for registers.
template <typename T>
struct LongBackward {
  static constexpr int kThreads = kLongThreads;
  static constexpr std::int64_t kSharedBytes = 2 * kThreads / kWarp * sizeof(float);

  static STRATA_DEVICE void run(const BackwardArguments<T>& a) {
    const VectorPlace place = vector_place(a.shape, block().x);
    const std::int64_t columns = a.shape.columns;
    const NormStats stats = read_stats(a, place);
    const T *dy = place.in(a.dy, columns), *x = place.in(a.x, columns);
    float sums[2] = {};
    for (std::int64_t c = thread(); c < columns; c += kThreads) {
      float weight[1];
      read_floats(weight, a.weight, c);
      const float g = to_float(dy[c]) * weight[0];
      sums[0] += g;
      sums[1] = std::fma(g, stats.normal(to_float(x[c])), sums[1]);
    }
    sum_group<kThreads>(sums, reinterpret_cast<float*>(shared_memory()));
    const NormMeans means(a, sums);
    const T* dsum = a.dsum.data == nullptr ? nullptr : place.in(a.dsum, columns);
    T* dx = place.in(a.dx, columns);
    for (std::int64_t c = thread(); c < columns; c += kThreads) {
      float weight[1];
      read_floats(weight, a.weight, c);
      dx[c] = from_float<T>(means.dx(to_float(dy[c]) * weight[0], stats.normal(to_float(x[c])),
                                     stats.scale, dsum == nullptr ? 0.0f : to_float(dsum[c])));
    }
  }
};

/// Computes the column sums of one chunk of vectors that are too long for registers.
template <typename T>
struct LongSums {
  static constexpr int kThreads = 256;
  static STRATA_DEVICE void run(const BackwardArguments<T>& a) {
    const std::int64_t column = std::int64_t{block().x} * kThreads + thread();
    if (column >= a.shape.columns) return;
    const std::int64_t first = std::int64_t{block().y} * a.chunks.vectors;
    const std::int64_t last = std::min(first + a.chunks.vectors, a.shape.count);
    float dweight = 0, dbias = 0;
#pragma unroll 4
    for (std::int64_t vector = first; vector < last; ++vector) {
      const VectorPlace place = vector_place(a.shape, vector);
      const float d = to_float(place.in(a.dy, a.shape.columns)[column]);
      const float x = to_float(place.in(a.x, a.shape.columns)[column]);
      dweight = std::fma(d, read_stats(a, place).normal(x), dweight);
      dbias += d;
    }
    a.partial_sums(block().y, 0)[column] = dweight;
    if (a.biased) a.partial_sums(block().y, 1)[column] = dbias;
  }
};

template <typename G>
struct FinalArguments {
  const float* partial;
  NormChunks chunks;
  std::int64_t columns;
  G* out[2];
};

/// Adds the chunks' sums of 32 columns, for dweight (block().y = 0) or dbias (1).
template <typename G>
struct FinalNormSums {
  static constexpr int kThreads = ColumnSum::kThreads;
  static constexpr std::int64_t kSharedBytes = ColumnSum::kSharedBytes;

  static STRATA_DEVICE void run(const FinalArguments<G>& a) {
    const std::int64_t column = std::int64_t{block().x} * kWarp + lane();
    const bool there = column < a.columns;
    const double sum = ColumnSum::of(a.partial + block().y * a.chunks.stride + column,
                                     grid().y * a.chunks.stride, a.chunks.count, there);
    if (warp() == 0 && there) a.out[block().y][column] = from_float<G>(static_cast<float>(sum));
  }
};

template <typename T, bool kBiased>
void launch_held(kernels::Stream& stream, const BackwardArguments<T>& a, bool wide) {
  const auto run = [&](auto group) {
    using Body = HeldBackward<T, decltype(group), kBiased>;
    const auto blocks = static_cast<std::uint32_t>(a.chunks.count);
    launch<Body>(stream, {{blocks, 1, 1}, Body::shared_bytes(a.chunks)}, a);
  };
  if constexpr (std::is_same_v<T, Bf16>)
    NormGroups<T, 16, 24, 32>::choose(a.shape.columns, wide, run);
  else
    NormGroups<T, 32>::choose(a.shape.columns, wide, run);
}

template <typename T>
void launch_backward(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &dy = call.inputs[0], &x = call.inputs[1], &weight = call.inputs[2];
  const kernels::Tensor &stats = call.inputs[3], &dx = call.outputs[0];
  BackwardArguments<T> a{.shape = vector_shape(x),
                         .dy = rows_of<const T>(dy),
                         .x = rows_of<const T>(x),
                         .stats = rows_of<const float>(stats),
                         .weight = any_floats(weight),
                         .dx = rows_of<T>(dx),
                         .rms = call.attributes.integer("rms") != 0,
                         .biased = call.attributes.integer("bias") != 0,
                         .chunks = norm_chunks(x.type.shape),
                         .partial = reinterpret_cast<float*>(call.workspace.data())};
  STRATA_CHECK(static_cast<std::int64_t>(call.workspace.size()) >=
               a.chunks.bytes(a.biased ? 2 : 1));
  bool wide = units_fit(a.shape, dy) && units_fit(a.shape, x) && units_fit(a.shape, dx) &&
              any_packs_fit(pack_elements(sizeof(T)), weight);
  if (call.inputs.size() == 5) {
    a.dsum = rows_of<const T>(call.inputs[4]);
    wide = wide && units_fit(a.shape, call.inputs[4]);
  }
  if (a.shape.columns <= kHeldColumns) {
    if (a.biased)
      launch_held<T, true>(stream, a, wide);
    else
      launch_held<T, false>(stream, a, wide);
    return;
  }
  // The sums come first, because dx may take the storage of dy.
  const auto across = static_cast<std::uint32_t>((a.shape.columns + LongSums<T>::kThreads - 1) /
                                                 LongSums<T>::kThreads);
  launch<LongSums<T>>(stream, {{across, static_cast<std::uint32_t>(a.chunks.count), 1}, 0}, a);
  launch<LongBackward<T>>(
      stream, {{static_cast<std::uint32_t>(a.shape.count), 1, 1}, LongBackward<T>::kSharedBytes},
      a);
}

}  // namespace

void norm_backward(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &x = call.inputs[1], &dweight = call.outputs[1];
  STRATA_CHECK(call.inputs[0].dtype() == x.dtype(), "dy is", name_of(call.inputs[0].dtype()),
               "and x", name_of(x.dtype()));
  STRATA_CHECK(call.inputs.size() < 5 || call.inputs[4].dtype() == x.dtype());
  with_float_type(x.dtype(),
                  [&](auto element) { launch_backward<decltype(element)>(stream, call); });
  with_float_type(dweight.dtype(), [&](auto element) {
    using G = decltype(element);
    const auto outputs = static_cast<std::uint32_t>(call.outputs.size() - 1);
    const std::int64_t columns = dweight.elements();
    launch<FinalNormSums<G>>(
        stream,
        {{static_cast<std::uint32_t>((columns + kWarp - 1) / kWarp), outputs, 1},
         FinalNormSums<G>::kSharedBytes},
        FinalArguments<G>{reinterpret_cast<const float*>(call.workspace.data()),
                          norm_chunks(x.type.shape),
                          columns,
                          {dweight.row<G>(), outputs > 1 ? call.outputs[2].row<G>() : nullptr}});
  });
}

}  // namespace strata::cuda
