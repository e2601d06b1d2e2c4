// Implements kernels/ops/norm_squares.h on CUDA, with the bits of the CPU.
//
// A warp sums the squares of a cell; its lanes are those of the definition. Warps add cells to
// digits of their own in shared memory, and blocks add those to the word; digits are integers, so
// any order gives the same bits. Memory is the bound, 4 bytes per element (2 of bf16). On devices
// with few fp64 units (sm_89, sm_120) one conversion and one fma per element, at 2 per clock and
// multiprocessor, take about as long as memory.
#include "kernels/ops/norm_squares.h"

#include <algorithm>
#include <cmath>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/element.cuh"
#include "kernels/ops/wide_sum.h"

namespace strata::cuda {
namespace {

using kernels::AgreedWord;
using kernels::kNormCell;
using kernels::kNormLanes;

static_assert(kNormLanes == kWarp);

constexpr int kWarps = 8;
/// The fewest cells per warp, enough to outweigh the cost of adding a block's digits to the word.
constexpr std::int64_t kFewestCells = 2;
/// The largest number of blocks: several waves on any device.
constexpr std::int64_t kMostBlocks = 4096;

struct StartArguments {
  const std::int64_t* in;  ///< null: zeros
  std::int64_t* word;
};

/// Sets the word that the sums are added to.
struct StartWord {
  static constexpr int kThreads = 96;
  static STRATA_DEVICE void run(const StartArguments& x) {
    const int i = thread();
    if (i < AgreedWord::kWords) x.word[i] = x.in == nullptr ? 0 : x.in[i];
  }
};

template <typename T>
struct NormArguments {
  const T* gradient;
  std::int64_t count;
  std::int64_t* word;
};

template <typename T>
struct NormSquares {
  static constexpr int kThreads = kWarps * kWarp;

  /// Adds x * x, which is exact in fp64, so a fused multiply-add gives the same bits.
  static STRATA_DEVICE double add_square(double sum, double x) { return std::fma(x, x, sum); }

  /// Returns in all lanes the sum of squares of a cell, or of its `count` elements if it has fewer.
  static STRATA_DEVICE double cell_squares(const T* cell, std::int64_t count) {
    constexpr int kPerLane = static_cast<int>(kNormCell) / kWarp;
    double sum = 0;
    if (count >= kNormCell) {
      T x[kPerLane];
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) x[i] = cell[i * kWarp + lane()];
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) sum = add_square(sum, to_float(x[i]));
    } else {
      for (std::int64_t i = lane(); i < count; i += kWarp) sum = add_square(sum, to_float(cell[i]));
    }
    for (int width = kWarp / 2; width >= 1; width /= 2) sum += shuffle_xor(sum, width);
    return sum;
  }

  static STRATA_DEVICE void run(const NormArguments<T>& x) {
    auto* digits = reinterpret_cast<std::int64_t*>(shared_memory());
    auto* own = digits + warp() * AgreedWord::kWords;
    for (int i = lane(); i < AgreedWord::kWords; i += kWarp) own[i] = 0;
    sync_warp();
    const std::int64_t cells = (x.count + kNormCell - 1) / kNormCell;
    for (std::int64_t cell = std::int64_t{block().x} * kWarps + warp(); cell < cells;
         cell += std::int64_t{grid().x} * kWarps) {
      const std::int64_t first = cell * kNormCell;
      const kernels::WideAddend addend =
          kernels::wide_addend(cell_squares(x.gradient + first, x.count - first));
      if (!addend.valid) {
        if (lane() == 0) ++own[AgreedWord::kNonFinite];
      } else if (lane() < 3) {
        const std::int64_t low_or_middle = lane() == 0 ? addend.part[0] : addend.part[1];
        own[addend.digit + lane()] += lane() == 2 ? addend.part[2] : low_or_middle;
      }
      sync_warp();  // another lane may add to the same digit for the next cell
    }
    sync_block();
    const int i = thread();
    if (i >= AgreedWord::kWords) return;
    std::int64_t sum = 0;
    for (int w = 0; w < kWarps; ++w) sum += digits[w * AgreedWord::kWords + i];
    if (sum != 0) atomic_add(x.word + i, sum);
  }
};

}  // namespace

void norm_squares(kernels::Stream& stream, const kernels::KernelCall& call) {
  const kernels::Tensor &in = call.inputs[0], &gradient = call.inputs[1], &out = call.outputs[0];
  auto* word = out.row<std::int64_t>();
  const bool first = call.attributes.integer("first", 0) != 0;
  if (first || in.data != out.data)
    launch<StartWord>(stream, {},
                      StartArguments{first ? nullptr : in.row<const std::int64_t>(), word});
  const std::int64_t cells = (gradient.elements() + kNormCell - 1) / kNormCell;
  const std::int64_t blocks =
      std::min((cells + kWarps * kFewestCells - 1) / (kWarps * kFewestCells), kMostBlocks);
  const LaunchShape shape{{static_cast<std::uint32_t>(blocks)},
                          kWarps * AgreedWord::kWords * std::int64_t{sizeof(std::int64_t)}};
  with_float_type(gradient.dtype(), [&](auto element) {
    using T = decltype(element);
    launch<NormSquares<T>>(stream, shape,
                           NormArguments<T>{gradient.row<const T>(), gradient.elements(), word});
  });
}

}  // namespace strata::cuda
