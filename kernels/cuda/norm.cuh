// Pieces of the kernels of norm.h: the assignment of a vector's elements to threads, and sums.
//
// A vector belongs to a group of threads: a quarter of a warp, a warp or a block, depending on its
// length alone. Thread r of a group has the units (16 bytes) r, r + size, r + 2 size, ... The order
// of additions therefore depends on the shape alone, not on whether units can be moved as packs.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/cuda/any_floats.cuh"
#include "kernels/cuda/divisor.h"
#include "kernels/cuda/rows.cuh"

namespace strata::cuda {

/// The elements that a thread may hold, and so the longest vectors that each kind of group holds.
inline constexpr int kNormElements = 32;
inline constexpr std::int64_t kQuarterColumns = 8 * kNormElements;
inline constexpr std::int64_t kWarpColumns = 32 * kNormElements;
inline constexpr std::int64_t kBlockColumns = 128 * kNormElements;
inline constexpr std::int64_t kHeldColumns = 256 * kNormElements;
inline constexpr int kLongThreads = 512;  ///< threads of a block that takes one longer vector

/// The vectors along the last dimension, numbered through rows and heads.
struct VectorShape {
  std::int64_t count = 0;
  std::int64_t columns = 0;
  Divisor heads;
};

inline VectorShape vector_shape(const kernels::Tensor& x) {
  const kernels::Shape& shape = x.type.shape;
  const std::int64_t heads = shape.ndim() == 3 ? shape[1] : 1;
  return {shape[0] * heads, shape[shape.ndim() - 1], Divisor(heads)};
}

/// Row and head of a vector.
struct VectorPlace {
  std::int64_t row, head;

  template <typename T>
  [[nodiscard]] STRATA_DEVICE T* in(const RowPointer<T>& of, std::int64_t columns) const {
    return of.data + row * of.stride + head * columns;
  }
};

STRATA_DEVICE VectorPlace vector_place(const VectorShape& shape, std::int64_t vector) {
  const Divisor::Parts parts = shape.heads.divide(vector);
  return {parts.quotient, parts.remainder};
}

/// True if every vector of `tensor` is whole, aligned units of 16 bytes.
inline bool units_fit(const VectorShape& shape, const kernels::Tensor& tensor) {
  const std::int64_t unit = 16 / size_of(tensor.dtype());
  return shape.columns % unit == 0 && (tensor.rows() <= 1 || tensor.row_stride() % unit == 0) &&
         reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
}

/// Returns, in each of the kLanes lanes of a part of a warp, their sum, with the same bits.
template <int kLanes>
STRATA_DEVICE float sum_lanes(float value) {
#pragma unroll
  for (int mask = kLanes / 2; mask >= 1; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

/// Makes kCount sums over a group of kGroup threads, all of which call it. A group larger than a
/// warp is a block, and `slots` [kCount * kGroup / 32] is then shared memory that no earlier call
/// used, unless there was a barrier since.
template <int kGroup, int kCount>
STRATA_DEVICE void sum_group(float (&values)[kCount], float* slots) {
  if constexpr (kGroup <= kWarp) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = sum_lanes<kGroup>(values[i]);
  } else {
    constexpr int kWarps = kGroup / kWarp;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = sum_lanes<kWarp>(values[i]);
      if (lane() == 0) slots[i * kWarps + warp()] = values[i];
    }
    sync_block();
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = slots[i * kWarps];
#pragma unroll
      for (int w = 1; w < kWarps; ++w) values[i] += slots[i * kWarps + w];
    }
  }
}

/// A thread's view of the vector of its group. With kWide units are moved as packs; else element by
/// element, and the vector may end inside a unit.
template <typename T, int kGroup, int kElements, bool kWideUnits>
struct NormGroup {
  static constexpr bool kWide = kWideUnits;
  static constexpr int kSize = kGroup;
  static constexpr int kThreads = std::max(kGroup, 128);
  static constexpr int kPerBlock = kThreads / kGroup;  ///< groups per block
  static constexpr int kWidth = pack_elements(sizeof(T));
  static constexpr int kUnits = kElements / kWidth;
  static constexpr int kSlots = kGroup <= kWarp ? 0 : kGroup / kWarp;  ///< sum_group's, per sum

  static STRATA_DEVICE int group() { return thread() / kGroup; }
  static STRATA_DEVICE bool leads() { return thread() % kGroup == 0; }
  /// The first column of this thread's unit k. The unit exists if the column is inside the vector.
  static STRATA_DEVICE int column(int k) { return (thread() % kGroup + k * kGroup) * kWidth; }
  /// True if element i of the existing unit at `column` is inside the vector.
  static STRATA_DEVICE bool has(int column, int i, int columns) {
    return kWide || column + i < columns;
  }

  static STRATA_DEVICE Pack<T, kWidth> read(const T* vector, int column, int columns) {
    if constexpr (kWide) {
      return load_once<kWidth>(vector + column);
    } else {
      Pack<T, kWidth> pack{};
#pragma unroll
      for (int i = 0; i < kWidth; ++i)
        if (column + i < columns) pack.v[i] = vector[column + i];
      return pack;
    }
  }
  static STRATA_DEVICE void write(T* vector, int column, int columns, const Pack<T, kWidth>& pack) {
    if constexpr (kWide) {
      store<kWidth>(vector + column, pack);
    } else {
#pragma unroll
      for (int i = 0; i < kWidth; ++i)
        if (column + i < columns) vector[column + i] = pack.v[i];
    }
  }
  /// Reads one unit of a vector of parameters as fp32, zeros after its end.
  static STRATA_DEVICE void read_parameters(float (&to)[kWidth], const AnyFloats& vector,
                                            int column, int columns) {
    if constexpr (kWide) {
      read_floats(to, vector, column);
    } else {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        float one[1] = {};
        if (column + i < columns) read_floats(one, vector, column + i);
        to[i] = one[0];
      }
    }
  }
};

/// The number of blocks of `threads` that fit into a multiprocessor if a thread takes `registers`.
/// As Body::kLeastBlocks it keeps the compiler from spilling to save a few registers.
constexpr int blocks_of_registers(int threads, int registers) {
  constexpr int kRegisters = 64 * 1024;
  return kRegisters / (threads * registers);
}

/// Host: calls body(group) with a NormGroup for vectors of `columns` <= kHeldColumns. If `wide`,
/// a thread holds up to the first of kSizes elements that is enough; the last is kNormElements. The
/// size does not change bits; the smaller it is, the more threads run at once.
template <typename T, int... kSizes>
struct NormGroups {
  template <typename Body>
  static void choose(std::int64_t columns, bool wide, const Body& body) {
    if (columns <= kQuarterColumns) return of_size<8>(columns, wide, body);
    if (columns <= kWarpColumns) return of_size<kWarp>(columns, wide, body);
    if (columns <= kBlockColumns) return of_size<128>(columns, wide, body);
    of_size<256>(columns, wide, body);
  }

 private:
  template <int kGroup, typename Body>
  static void of_size(std::int64_t columns, bool wide, const Body& body) {
    if (!wide) return body(NormGroup<T, kGroup, kNormElements, false>{});
    constexpr std::int64_t kUnit = pack_elements(sizeof(T)) * std::int64_t{kGroup};
    const std::int64_t needed = (columns + kUnit - 1) / kUnit * pack_elements(sizeof(T));
    // Groups of 256 always have more than 16 elements per thread, else a smaller group would do.
    bool found = false;
    const auto try_size = [&](auto size) {
      constexpr int kSize = decltype(size)::value;
      if constexpr (kGroup < 256 || kSize > 16)
        if (!found && needed <= kSize) {
          found = true;
          body(NormGroup<T, kGroup, kSize, true>{});
        }
    };
    (try_size(std::integral_constant<int, kSizes>{}), ...);
  }
};

}  // namespace strata::cuda
