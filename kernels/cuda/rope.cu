// Implements kernels/ops/rope.h on CUDA.
#include <algorithm>
#include <array>
#include <span>

#include "core/check.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elementwise.cuh"
#include "kernels/math/sine_cosine.h"
#include "kernels/ops/rope.h"

namespace strata::cuda {
namespace {

constexpr int kThreadsPerBlock = 256;
constexpr std::int64_t kMostPairs = 512;  // pairs of elements in a head

LaunchShape one_thread_each(std::int64_t items) {
  return {{static_cast<std::uint32_t>((items + kThreadsPerBlock - 1) / kThreadsPerBlock), 1, 1}, 0};
}

/// Frequencies are part of the arguments, which a captured graph keeps for its replays.
struct TableArguments {
  static constexpr std::int64_t kPairs = 256;  ///< pairs that one launch takes
  RowPointer<float> cosines, sines;
  std::int64_t items;
  Divisor pairs;
  double factor;
  double frequency[kPairs];
};

struct Table {
  static constexpr int kThreads = kThreadsPerBlock;
  static STRATA_DEVICE void run(const TableArguments& a) {
    const std::int64_t index = std::int64_t{block().x} * kThreads + thread();
    if (index >= a.items) return;
    const auto [position, pair] = a.pairs.divide(index);
    const kernels::SineCosine of =
        kernels::sine_cosine(static_cast<double>(position) * a.frequency[pair]);
    a.cosines.data[position * a.cosines.stride + pair] = static_cast<float>(of.cosine * a.factor);
    a.sines.data[position * a.sines.stride + pair] = static_cast<float>(of.sine * a.factor);
  }
};

template <typename T>
struct RopeArguments {
  RowPointer<const T> x;
  RowPointer<const float> table;
  RowPointer<T> y;
  std::int64_t items;
  std::int64_t half;  ///< half the elements of a head
  int heads;
  float sign;  ///< -1 for the inverse rotation
  Divisor packs, groups, sequence;
};

/// Loads elements [0, N) of `from`, in packs of 16 bytes if N allows.
template <int N>
STRATA_DEVICE void load_numbers(float (&to)[N], const float* from) {
  constexpr int kWide = N % 4 == 0 ? 4 : 1;
#pragma unroll
  for (int i = 0; i < N; i += kWide) {
    const auto pack = load<kWide>(from + i);
#pragma unroll
    for (int j = 0; j < kWide; ++j) to[i + j] = pack.v[j];
  }
}

/// Rotates, per thread, N pairs of up to four heads of a row by the same angles. The table is read
/// once for them: 8 bytes per pair, from the caches, compared with 16 bytes read and 16 written of
/// four heads of 16-bit elements.
template <typename T, int N>
struct Rope {
  static constexpr int kThreads = kThreadsPerBlock;
  static constexpr int kHeads = 4;
  static STRATA_DEVICE void run(const RopeArguments<T>& a) {
    const std::int64_t index = std::int64_t{block().x} * kThreads + thread();
    if (index >= a.items) return;
    const auto [group_of_row, pack] = a.packs.divide(index);
    const auto [row, group] = a.groups.divide(group_of_row);
    const std::int64_t position = a.sequence.divide(row).remainder;
    const int first_head = static_cast<int>(group) * kHeads;
    const std::int64_t column = first_head * 2 * a.half + pack * N;
    const T* from = a.x.data + row * a.x.stride + column;
    Pack<T, N> low[kHeads], high[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      // Heads beyond the last read the first again: without a branch all reads start at once.
      const T* head = first_head + h < a.heads ? from + h * 2 * a.half : from;
      low[h] = load<N>(head);
      high[h] = load<N>(head + a.half);
    }
    const float* angles = a.table.data + position * a.table.stride + pack * N;
    float cosine[N], sine[N];
    load_numbers(cosine, angles);
    load_numbers(sine, angles + a.half);
    const RowPointer<T> to{a.y.data + row * a.y.stride + column, 2 * a.half};
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      if (first_head + h >= a.heads) break;
      float turned_low[N], turned_high[N];
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float u = to_float(low[h].v[i]), v = to_float(high[h].v[i]);
        turned_low[i] = fmaf(-v, a.sign * sine[i], u * cosine[i]);
        turned_high[i] = fmaf(u, a.sign * sine[i], v * cosine[i]);
      }
      store_floats(to, h, 0, turned_low);
      store_floats(to, h, a.half, turned_high);
    }
  }
};

}  // namespace

void rope_table(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor& table = call.outputs[0];
  const std::int64_t half = table.cols() / 2;
  std::array<double, kMostPairs> all_frequencies;
  STRATA_CHECK(half <= kMostPairs, half);
  const std::span<double> frequencies(all_frequencies.data(), static_cast<std::size_t>(half));
  const double factor = kernels::rope_frequencies(call.attributes, frequencies);
  for (std::int64_t first = 0; first < half; first += TableArguments::kPairs) {
    const RowPointer<float> row = rows_of<float>(table);
    const std::int64_t pairs = std::min<std::int64_t>(half - first, TableArguments::kPairs);
    TableArguments arguments{.cosines = {row.data + first, row.stride},
                             .sines = {row.data + half + first, row.stride},
                             .items = table.rows() * pairs,
                             .pairs = Divisor(pairs),
                             .factor = factor,
                             .frequency = {}};
    std::copy_n(frequencies.begin() + first, pairs, arguments.frequency);
    launch<Table>(stream, one_thread_each(arguments.items), arguments);
  }
}

void rope(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &x = call.inputs[0], &table = call.inputs[1], &y = call.outputs[0];
  const std::int64_t heads = x.type.shape[1], half = x.type.shape[2] / 2;
  if (y.elements() == 0) return;
  with_float_type(x.dtype(), [&](auto element) {
    using T = decltype(element);
    constexpr int kWide = pack_elements(sizeof(T));
    const bool fits = packs_fit(kWide, {x.rows(), half}, {&x, &y}) &&
                      packs_fit(4, {table.rows(), half}, {&table});
    with_width<kWide>(fits, [&](auto width) {
      using Body = Rope<T, width()>;
      const std::int64_t packs = half / width();
      const std::int64_t groups = (heads + Body::kHeads - 1) / Body::kHeads;
      const RopeArguments<T> arguments{
          .x = rows_of<const T>(x),
          .table = rows_of<const float>(table),
          .y = rows_of<T>(y),
          .items = x.rows() * groups * packs,
          .half = half,
          .heads = static_cast<int>(heads),
          .sign = call.attributes.integer("inverse", 0) != 0 ? -1.0f : 1.0f,
          .packs = Divisor(packs),
          .groups = Divisor(groups),
          .sequence = Divisor(call.attributes.integer("sequence"))};
      launch<Body>(stream, one_thread_each(arguments.items), arguments);
    });
  });
}

}  // namespace strata::cuda
