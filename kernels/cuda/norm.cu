// Implements norm and residual_norm of kernels/ops/norm.h on CUDA. Vectors of up to 8,192 elements
// stay in registers: each operand is read once and each result written once; the weights come from
// the caches. An element of 16 bits takes 4 bytes (norm) or 8 (residual_norm), and 18 or 23
// instructions on sm_90, some 35 with dropout; the memory of an H200 leaves time for 25 or 49.
#include "kernels/ops/norm.h"

#include <cmath>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/norm.cuh"
#include "kernels/cuda/random.cuh"

namespace strata::cuda {
namespace {

/// The vector that is normalized: x, x + delta, or x + dropout(delta).
enum class NormInput : std::uint8_t { plain, residual, dropped };

template <typename T>
struct NormArguments {
  VectorShape shape;
  RowPointer<const T> x, delta;
  RowPointer<T> sum;  ///< null for NormInput::plain
  AnyFloats weight, bias;
  RowPointer<T> y;
  RowPointer<float> stats;
  DropoutArguments dropout;
  float eps = 0;
  bool rms = false;
};

/// Returns 1 / sqrt(variance + eps), given the sum of squares.
template <typename T>
STRATA_DEVICE float norm_scale(const NormArguments<T>& a, float squares) {
  return 1.0f / std::sqrt(squares / static_cast<float>(a.shape.columns) + a.eps);
}

template <typename T>
STRATA_DEVICE void write_stats(const NormArguments<T>& a, const VectorPlace& place, float mean,
                               float scale) {
  float* stats = place.in(a.stats, 2);
  stats[0] = mean;
  stats[1] = scale;
}

template <typename T, typename Group, NormInput kInput>
struct HeldNorm {
  static constexpr int kThreads = Group::kThreads;
  static constexpr int kWidth = Group::kWidth, kUnits = Group::kUnits;
  using Unit = Pack<T, kWidth>;
  static constexpr int kOperands = kInput == NormInput::plain ? 1 : 2;
  static constexpr int kRegisters =
      kUnits * kWidth + kUnits * 4 * kOperands + (kInput == NormInput::dropped ? 48 : 32);
  static constexpr int kLeastBlocks =
      Group::kWide ? blocks_of_registers(kThreads, kRegisters) : 256 / kThreads;

  /// Adds delta, after dropout, to x and stores the sum; x then has the rounded values.
  static STRATA_DEVICE void add_residual(float (&x)[kWidth], const Unit& delta_pack,
                                         const NormArguments<T>& a, const VectorPlace& place,
                                         const DropoutPlace& random, int column, int columns) {
    float delta[kWidth];
    to_floats(delta, delta_pack);
    if constexpr (kInput == NormInput::dropped) {
      const auto at = random.position + static_cast<std::uint64_t>(column);
      if constexpr (Group::kWide) {
        drop(delta, a.dropout, {random.source, at});
      } else {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          float one[1] = {delta[i]};
          drop(one, a.dropout, {random.source, at + static_cast<std::uint64_t>(i)});
          delta[i] = one[0];
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) x[i] += delta[i];
    const Unit sum = to_pack<T>(x);
    Group::write(place.in(a.sum, a.shape.columns), column, columns, sum);
    to_floats(x, sum);
  }

  static STRATA_DEVICE void run(const NormArguments<T>& a) {
    const std::int64_t vector = std::int64_t{block().x} * Group::kPerBlock + Group::group();
    // Groups after the last vector take part in their warp's shuffles with no columns.
    const int columns = vector < a.shape.count ? static_cast<int>(a.shape.columns) : 0;
    const VectorPlace place = vector_place(a.shape, vector);
    auto* slots = reinterpret_cast<float*>(shared_memory());

    Unit units[kUnits], deltas[kUnits];
    DropoutPlace random{};
    if (columns > 0) {
      const T* from = place.in(a.x, a.shape.columns);
#pragma unroll
      for (int k = 0; k < kUnits; ++k) {
        const int column = Group::column(k);
        if (column >= columns) continue;
        units[k] = Group::read(from, column, columns);
        if constexpr (kInput != NormInput::plain)
          deltas[k] = Group::read(place.in(a.delta, a.shape.columns), column, columns);
      }
      if constexpr (kInput == NormInput::dropped) random = dropout_place(a.dropout, place.row, 0);
    }

    float x[kUnits][kWidth];
    float sum[1] = {}, squares[1] = {};
#pragma unroll
    for (int k = 0; k < kUnits; ++k) {
      const int column = Group::column(k);
      if (column >= columns) continue;
      to_floats(x[k], units[k]);
      if constexpr (kInput != NormInput::plain)
        add_residual(x[k], deltas[k], a, place, random, column, columns);
#pragma unroll
      for (int i = 0; i < kWidth; ++i)
        if (Group::has(column, i, columns)) sum[0] += x[k][i];
    }
    float mean = 0;
    if (!a.rms) {
      sum_group<Group::kSize>(sum, slots);
      mean = sum[0] / static_cast<float>(a.shape.columns);
    }
#pragma unroll
    for (int k = 0; k < kUnits; ++k) {
      const int column = Group::column(k);
      if (column >= columns) continue;
#pragma unroll
      for (int i = 0; i < kWidth; ++i)
        if (Group::has(column, i, columns)) {
          const float difference = x[k][i] - mean;
          squares[0] = std::fma(difference, difference, squares[0]);
        }
    }
    sum_group<Group::kSize>(squares, slots + Group::kSlots);
    const float scale = norm_scale(a, squares[0]);
    if (columns > 0 && Group::leads()) write_stats(a, place, mean, scale);
    write_result(x, mean, scale, a, place, columns);
  }

  /// Writes the normalized vector, for which it overwrites x.
  static STRATA_DEVICE void write_result(float (&x)[kUnits][kWidth], float mean, float scale,
                                         const NormArguments<T>& a, const VectorPlace& place,
                                         int columns) {
#pragma unroll
    for (int k = 0; k < kUnits; ++k) {
      const int column = Group::column(k);
      if (column >= columns) continue;
      float weight[kWidth];
      Group::read_parameters(weight, a.weight, column, columns);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) x[k][i] = (x[k][i] - mean) * scale;
      if (a.bias.data == nullptr) {
#pragma unroll
        for (int i = 0; i < kWidth; ++i) x[k][i] *= weight[i];
      } else {
        float bias[kWidth];
        Group::read_parameters(bias, a.bias, column, columns);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) x[k][i] = std::fma(x[k][i], weight[i], bias[i]);
      }
      Group::write(place.in(a.y, a.shape.columns), column, columns, to_pack<T>(x[k]));
    }
  }
};

/// Normalizes a vector too long for registers. It is read, mostly from the caches, once for each
/// sum and once for the result.
template <typename T>
struct LongNorm {
  static constexpr int kThreads = kLongThreads;
  static constexpr std::int64_t kSharedBytes = 2 * kThreads / kWarp * sizeof(float);

  static STRATA_DEVICE void run(const NormArguments<T>& a) {
    const VectorPlace place = vector_place(a.shape, block().x);
    const std::int64_t columns = a.shape.columns;
    auto* slots = reinterpret_cast<float*>(shared_memory());
    const T* x = place.in(a.x, columns);
    float sum[1] = {}, squares[1] = {};
    if (a.delta.data != nullptr) {
      const T* delta = place.in(a.delta, columns);
      T* to = place.in(a.sum, columns);
      for (std::int64_t c = thread(); c < columns; c += kThreads) {
        float added[1] = {to_float(delta[c])};
        if (a.dropout.rng != nullptr)
          drop(added, a.dropout, dropout_place(a.dropout, place.row, c));
        to[c] = from_float<T>(to_float(x[c]) + added[0]);
      }
      x = to;  // each thread reads only what it wrote itself
    }
    float mean = 0;
    if (!a.rms) {
      for (std::int64_t c = thread(); c < columns; c += kThreads) sum[0] += to_float(x[c]);
      sum_group<kThreads>(sum, slots);
      mean = sum[0] / static_cast<float>(columns);
    }
    for (std::int64_t c = thread(); c < columns; c += kThreads) {
      const float difference = to_float(x[c]) - mean;
      squares[0] = std::fma(difference, difference, squares[0]);
    }
    sum_group<kThreads>(squares, slots + kThreads / kWarp);
    const float scale = norm_scale(a, squares[0]);
    if (thread() == 0) write_stats(a, place, mean, scale);
    T* y = place.in(a.y, columns);
    for (std::int64_t c = thread(); c < columns; c += kThreads) {
      float weight[1], bias[1] = {};
      read_floats(weight, a.weight, c);
      if (a.bias.data != nullptr) read_floats(bias, a.bias, c);
      y[c] = from_float<T>(std::fma((to_float(x[c]) - mean) * scale, weight[0], bias[0]));
    }
  }
};

template <typename T, NormInput kInput>
void launch_held(kernels::Stream& stream, const NormArguments<T>& a, bool wide) {
  const auto run = [&](auto group) {
    using Group = decltype(group);
    const std::int64_t blocks = (a.shape.count + Group::kPerBlock - 1) / Group::kPerBlock;
    launch<HeldNorm<T, Group, kInput>>(stream,
                                       {{static_cast<std::uint32_t>(blocks), 1, 1},
                                        2 * Group::kSlots * std::int64_t{sizeof(float)}},
                                       a);
  };
  if constexpr (std::is_same_v<T, Bf16> && kInput != NormInput::dropped)
    NormGroups<T, 16, 32>::choose(a.shape.columns, wide, run);
  else
    NormGroups<T, 32>::choose(a.shape.columns, wide, run);
}

struct NormOperands {
  const kernels::Tensor &x, &weight;
  const kernels::Tensor *bias, *delta, *sum, *rng;
  const kernels::Tensor &y, &stats;
};

template <typename T>
void launch_norm(kernels::Stream& stream, const NormOperands& o,
                 const kernels::Attributes& attributes) {
  NormArguments<T> a{.shape = vector_shape(o.x),
                     .x = rows_of<const T>(o.x),
                     .weight = any_floats(o.weight),
                     .y = rows_of<T>(o.y),
                     .stats = rows_of<float>(o.stats),
                     .eps = static_cast<float>(attributes.real("eps")),
                     .rms = attributes.integer("rms") != 0};
  constexpr int kWidth = pack_elements(sizeof(T));
  bool wide = units_fit(a.shape, o.x) && units_fit(a.shape, o.y) && any_packs_fit(kWidth, o.weight);
  if (o.bias != nullptr) {
    a.bias = any_floats(*o.bias);
    wide = wide && any_packs_fit(kWidth, *o.bias);
  }
  if (o.delta != nullptr) {
    a.delta = rows_of<const T>(*o.delta);
    a.sum = rows_of<T>(*o.sum);
    wide = wide && units_fit(a.shape, *o.delta) && units_fit(a.shape, *o.sum);
  }
  if (o.rng != nullptr) a.dropout = dropout_arguments(*o.rng, attributes, a.shape.columns);

  if (a.shape.columns > kHeldColumns)
    launch<LongNorm<T>>(
        stream, {{static_cast<std::uint32_t>(a.shape.count), 1, 1}, LongNorm<T>::kSharedBytes}, a);
  else if (o.delta == nullptr)
    launch_held<T, NormInput::plain>(stream, a, wide);
  else if (o.rng == nullptr)
    launch_held<T, NormInput::residual>(stream, a, wide);
  else
    launch_held<T, NormInput::dropped>(stream, a, wide);
}

}  // namespace

void norm(kernels::Stream& stream, const kernels::KernelCall& call) {
  const NormOperands operands{.x = call.inputs[0],
                              .weight = call.inputs[1],
                              .bias = call.inputs.size() == 3 ? &call.inputs[2] : nullptr,
                              .delta = nullptr,
                              .sum = nullptr,
                              .rng = nullptr,
                              .y = call.outputs[0],
                              .stats = call.outputs[1]};
  with_float_type(operands.x.dtype(), [&](auto element) {
    launch_norm<decltype(element)>(stream, operands, call.attributes);
  });
}

void residual_norm(kernels::Stream& stream, const kernels::KernelCall& call) {
  const bool drops = call.attributes.real("p", 0) > 0;
  const bool biased = call.attributes.integer("bias") != 0;
  const NormOperands operands{.x = call.inputs[0],
                              .weight = call.inputs[2],
                              .bias = biased ? &call.inputs[3] : nullptr,
                              .delta = &call.inputs[1],
                              .sum = &call.outputs[0],
                              .rng = drops ? &call.inputs.back() : nullptr,
                              .y = call.outputs[1],
                              .stats = call.outputs[2]};
  with_float_type(operands.x.dtype(), [&](auto element) {
    launch_norm<decltype(element)>(stream, operands, call.attributes);
  });
}

}  // namespace strata::cuda
