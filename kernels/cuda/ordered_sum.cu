#include "kernels/cuda/ordered_sum.h"

#include <algorithm>

#include "core/check.h"
#include "kernels/cpu/ordered_sum.h"
#include "kernels/cuda/element.cuh"

namespace strata::cuda {
namespace {

using kernels::kMaxContributions;

template <typename T>
struct SumArguments {
  const T* leaves[kMaxContributions];
  int ranks;
  std::int64_t count;
  float scale;
  float* out;
};

template <int N>
struct Sums {
  float v[N];
};

/// Sums N elements per thread, over up to kLeaves ranks. Each element is read once per rank and
/// written once, which is the bound. All threads take the same branches of the tree.
template <typename T, int N, int kLeaves>
struct OrderedSum {
  static constexpr int kThreads = 256;
  static constexpr int kLeastBlocks = 4;  // keeps the compiler from spilling to save registers

  /// Returns the sum of the subtree of kWidth leaves from `first` on, of which `first` exists.
  template <int kWidth, int kElements>
  static STRATA_DEVICE Sums<kElements> tree(const SumArguments<T>& a, int first, std::int64_t at) {
    if constexpr (kWidth == 1) {
      const Pack<T, kElements> pack = load<kElements>(a.leaves[first] + at);
      Sums<kElements> leaf;
#pragma unroll
      for (int i = 0; i < kElements; ++i) leaf.v[i] = to_float(pack.v[i]);
      return leaf;
    } else {
      Sums<kElements> left = tree<kWidth / 2, kElements>(a, first, at);
      if (first + kWidth / 2 < a.ranks) {
        const Sums<kElements> right = tree<kWidth / 2, kElements>(a, first + kWidth / 2, at);
#pragma unroll
        for (int i = 0; i < kElements; ++i) left.v[i] += right.v[i];
      }
      return left;
    }
  }

  static STRATA_DEVICE void run(const SumArguments<T>& a) {
    const std::int64_t first = (std::int64_t{block().x} * kThreads + thread()) * N;
    if (first + N <= a.count) {
      const Sums<N> sums = tree<kLeaves, N>(a, 0, first);
      constexpr int kStore = N < 4 ? N : 4;
#pragma unroll
      for (int i = 0; i < N; i += kStore) {
        Pack<float, kStore> pack;
#pragma unroll
        for (int j = 0; j < kStore; ++j) pack.v[j] = sums.v[i + j] * a.scale;
        store<kStore>(a.out + first + i, pack);
      }
    } else {
#pragma unroll 1
      for (std::int64_t at = first; at < a.count; ++at)
        a.out[at] = tree<kLeaves, 1>(a, 0, at).v[0] * a.scale;
    }
  }
};

bool aligned(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 16 == 0; }

template <typename T, int N, int kLeaves>
void launch_sum(kernels::Stream& stream, const SumArguments<T>& arguments) {
  using Body = OrderedSum<T, N, kLeaves>;
  constexpr std::int64_t kOfBlock = std::int64_t{Body::kThreads} * N;
  const std::int64_t blocks = (arguments.count + kOfBlock - 1) / kOfBlock;
  launch<Body>(stream, {{static_cast<std::uint32_t>(blocks), 1, 1}, 0}, arguments);
}

template <typename From, typename To>
struct WireArguments {
  const From* from;
  To* to;
  std::int64_t count;
};

/// Converts N elements per thread, each read and written once, which is the bound.
template <typename From, typename To, int N>
struct ConvertToWire {
  static constexpr int kThreads = 256;

  static STRATA_DEVICE void run(const WireArguments<From, To>& a) {
    const std::int64_t first = (std::int64_t{block().x} * kThreads + thread()) * N;
    if (first + N <= a.count) {
      const Pack<From, N> in = load<N>(a.from + first);
      Pack<To, N> out;
#pragma unroll
      for (int i = 0; i < N; ++i) out.v[i] = from_float<To>(to_float(in.v[i]));
      store<N>(a.to + first, out);
    } else {
      for (std::int64_t at = first; at < a.count; ++at)
        a.to[at] = from_float<To>(to_float(a.from[at]));
    }
  }
};

template <typename From, typename To, int N>
void launch_convert(kernels::Stream& stream, const WireArguments<From, To>& arguments) {
  using Body = ConvertToWire<From, To, N>;
  constexpr std::int64_t kOfBlock = std::int64_t{Body::kThreads} * N;
  const std::int64_t blocks = (arguments.count + kOfBlock - 1) / kOfBlock;
  launch<Body>(stream, {{static_cast<std::uint32_t>(blocks), 1, 1}, 0}, arguments);
}

}  // namespace

void ordered_sum(kernels::Stream& stream, std::span<const std::byte* const> contributions,
                 DType wire_type, std::int64_t count, float scale, float* out) {
  STRATA_CHECK(!contributions.empty() && contributions.size() <= kMaxContributions,
               contributions.size());
  if (count == 0) return;
  with_float_type(wire_type, [&](auto element) {
    using T = decltype(element);
    constexpr int kPack = static_cast<int>(16 / sizeof(T));
    constexpr int kFew = 8;
    SumArguments<T> arguments{.leaves = {}, .ranks = 0, .count = count, .scale = scale, .out = out};
    for (const std::byte* contribution : contributions)
      arguments.leaves[arguments.ranks++] = reinterpret_cast<const T*>(contribution);
    const bool few = arguments.ranks <= kFew;
    if (aligned(out) && std::ranges::all_of(contributions, aligned))
      few ? launch_sum<T, kPack, kFew>(stream, arguments)
          : launch_sum<T, kPack, kMaxContributions>(stream, arguments);
    else
      few ? launch_sum<T, 1, kFew>(stream, arguments)
          : launch_sum<T, 1, kMaxContributions>(stream, arguments);
  });
}

void convert_to_wire(kernels::Stream& stream, DType input_type, const std::byte* from,
                     DType wire_type, std::int64_t count, std::byte* to) {
  if (count == 0) return;
  with_float_type(input_type, [&](auto input) {
    with_float_type(wire_type, [&](auto wire) {
      using From = decltype(input);
      using To = decltype(wire);
      const WireArguments<From, To> arguments{reinterpret_cast<const From*>(from),
                                              reinterpret_cast<To*>(to), count};
      if (aligned(from) && aligned(to))
        launch_convert<From, To, 4>(stream, arguments);
      else
        launch_convert<From, To, 1>(stream, arguments);
    });
  });
}

}  // namespace strata::cuda
