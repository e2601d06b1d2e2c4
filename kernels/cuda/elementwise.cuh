// Kernels that make each element from the elements at the same place. Elementwise is the body of
// all of them: it moves packs and keeps several reads under way. A Step says what one of them does
// with a pack:
//     static constexpr int kWidth;                  // elements of a pack
//     static constexpr int kPacks;                  // packs per thread
//     struct Arguments { RowShape shape; ... };
//     struct Operands { ... };                      // what one pack reads
//     static STRATA_DEVICE Operands read(const Arguments&, Place);
//     static STRATA_DEVICE void write(const Arguments&, Place, const Operands&);
// All reads of a thread come before its writes, because the compiler could not move them there:
// outputs may take the storage of inputs.
#pragma once

#include <type_traits>

#include "kernels/cuda/divisor.h"
#include "kernels/cuda/rows.cuh"

namespace strata::cuda {

inline constexpr int kElementwiseThreads = 256;

/// The place of a pack's first element.
struct Place {
  std::int64_t row, col;
};

/// The number of elements in a pack that has 16 bytes of the larger type.
template <typename A, typename B>
constexpr int kSharedWidth = pack_elements(sizeof(A) > sizeof(B) ? sizeof(A) : sizeof(B));

/// The packs per thread for a step that reads `inputs` packs at each place. Two to four reads are
/// then under way, at full occupancy (2,048 threads) 64 to 128 KiB per multiprocessor; the memory
/// of an H200 needs about 30 KiB to be busy. Single elements (`width` 1) need more reads.
constexpr int packs_per_thread(int width, int inputs) {
  if (width == 1) return 4;
  return inputs <= 2 ? 2 : 1;
}

template <typename Step>
struct ElementwiseArguments {
  typename Step::Arguments step;
  std::int64_t packs;
  Divisor per_row;  ///< packs of a row
};

template <typename Step>
struct Elementwise {
  static constexpr int kThreads = kElementwiseThreads;
  static STRATA_DEVICE void run(const ElementwiseArguments<Step>& a) {
    constexpr int kPacks = Step::kPacks;
    const std::int64_t first = std::int64_t{block().x} * (kPacks * kThreads) + thread();
    if (first >= a.packs) return;
    Place at[kPacks];
    typename Step::Operands operands[kPacks];
#pragma unroll
    for (int k = 0; k < kPacks; ++k) {
      // Places beyond the end read the last pack: without a branch all reads start at once.
      const std::int64_t index = k == 0 ? first : std::min(first + k * kThreads, a.packs - 1);
      const Divisor::Parts parts =
          a.step.shape.rows == 1 ? Divisor::Parts{0, index} : a.per_row.divide(index);
      at[k] = {parts.quotient, parts.remainder * Step::kWidth};
      operands[k] = Step::read(a.step, at[k]);
    }
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
      if (first + k * kThreads < a.packs) Step::write(a.step, at[k], operands[k]);
  }
};

/// Enqueues Elementwise<Step> with one thread for every kPacks packs of the shape.
template <typename Step>
void launch_elementwise(kernels::Stream& stream, const typename Step::Arguments& arguments) {
  constexpr std::int64_t kPerBlock = std::int64_t{Step::kPacks} * kElementwiseThreads;
  const std::int64_t per_row = arguments.shape.cols / Step::kWidth;
  const std::int64_t packs = arguments.shape.rows * per_row;
  if (packs == 0) return;
  const auto blocks = static_cast<std::uint32_t>((packs + kPerBlock - 1) / kPerBlock);
  launch<Elementwise<Step>>(stream, {{blocks, 1, 1}, 0},
                            ElementwiseArguments<Step>{arguments, packs, Divisor(per_row)});
}

/// Host: calls body(width) with a std::integral_constant: `kWide` if `fits`, else 1.
template <int kWide, typename Body>
void with_width(bool fits, const Body& body) {
  if (fits)
    body(std::integral_constant<int, kWide>{});
  else
    body(std::integral_constant<int, 1>{});
}

template <int N, typename T>
STRATA_DEVICE Pack<std::remove_const_t<T>, N> read_pack(const RowPointer<T>& from, Place at) {
  return load<N>(from.data + at.row * from.stride + at.col);
}

template <int N, typename T>
STRATA_DEVICE void write_pack(const RowPointer<T>& to, Place at, const Pack<T, N>& pack) {
  store<N>(to.data + at.row * to.stride + at.col, pack);
}

}  // namespace strata::cuda
