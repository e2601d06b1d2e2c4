#include "kernels/cpu/ordered_sum.h"

#include <algorithm>
#include <cstdint>

#include "core/check.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/ordered_sum.cpp"
#include "hwy/foreach_target.h"
// The rest comes after foreach_target.h, which includes this file again for every target.
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu/float16_simd-inl.h"

#ifndef STRATA_KERNELS_CPU_ORDERED_SUM_ONCE
#define STRATA_KERNELS_CPU_ORDERED_SUM_ONCE
namespace strata::kernels {
namespace {

/// The arguments of one call, the same for every range.
struct OrderedSum {
  const std::byte* const* contributions;
  int ranks;
  DType input_type;
  DType wire_type;
  float scale;
  float* out;
  bool stream;  ///< store past the caches
};

/// Elements added at a time: leaves and partial sums of a block (24 KiB) stay in the first-level
/// cache.
constexpr std::int64_t kBlock = 512;
/// Leaves that one loop adds in registers.
constexpr int kGroup = 8;
/// Partial sums of at most kMaxContributions leaves that can wait at a time: 32, 16, 8, 8.
constexpr int kMaxPartials = 4;
/// An output of this many elements (4 MiB) would only push other data out of the cache, and a plain
/// store would read it first.
constexpr std::int64_t kStreamElements = 1 << 20;

}  // namespace
}  // namespace strata::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

/// Adds kLeaves leaves in the tree: its left half is full, missing leaves are skipped.
template <int kLeaves, class D>
HWY_INLINE hn::Vec<D> tree(D d, const float* const* leaves, std::int64_t i) {
  if constexpr (kLeaves == 1) {
    return hn::LoadU(d, leaves[0] + i);
  } else {
    constexpr int kLeft = kLeaves > 4 ? 4 : kLeaves > 2 ? 2 : 1;
    return hn::Add(tree<kLeft>(d, leaves, i), tree<kLeaves - kLeft>(d, leaves + kLeft, i));
  }
}

/// Adds leaves, times `factor`: 1 until the last addition. Stores go past the caches if kStream.
template <int kLeaves, bool kStream>
void add_leaves(const float* const* leaves, std::int64_t count, float factor, float* out) {
  for_each_vector(count, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto sum = hn::Mul(tree<kLeaves>(d, leaves, i), hn::Set(d, factor));
    if (kStream && hn::MaxLanes(d) > 1)
      hn::Stream(sum, d, out + i);
    else
      hn::StoreU(sum, d, out + i);
  });
}

using AddLeaves = void (*)(const float* const* leaves, std::int64_t count, float factor,
                           float* out);

template <bool kStream>
AddLeaves add_function(int leaves) {
  constexpr AddLeaves kFunctions[kGroup] = {add_leaves<1, kStream>, add_leaves<2, kStream>,
                                            add_leaves<3, kStream>, add_leaves<4, kStream>,
                                            add_leaves<5, kStream>, add_leaves<6, kStream>,
                                            add_leaves<7, kStream>, add_leaves<8, kStream>};
  return kFunctions[leaves - 1];
}

/// Does the last addition of a block, whose result is the output.
void finish(const OrderedSum& sum, const float* const* leaves, int size, std::int64_t count,
            float* out) {
  const AddLeaves add = sum.stream ? add_function<true>(size) : add_function<false>(size);
  add(leaves, count, sum.scale, out);
}

/// Rounds a leaf to the wire type and widens it to fp32 again.
template <class From, class Wire>
void round_leaf(const std::byte* from_bytes, std::int64_t count, float* to) {
  const auto* from = reinterpret_cast<const typename From::Storage*>(from_bytes);
  for_each_vector(count, [&](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreU(Wire::widen(d, Wire::round(d, From::load(d, from + i))), d, to + i);
  });
}

template <class From>
void widen_leaf(const std::byte* from_bytes, std::int64_t count, float* to) {
  const auto* from = reinterpret_cast<const typename From::Storage*>(from_bytes);
  for_each_vector(count, [&](auto d, std::int64_t i)
                             HWY_ATTR { hn::StoreU(From::load(d, from + i), d, to + i); });
}

/// Returns the leaf of `rank` from `begin` on: in place if nothing is converted, else in `scratch`.
const float* leaf(const OrderedSum& sum, int rank, std::int64_t begin, std::int64_t count,
                  float* scratch) {
  const DType wire = sum.wire_type;
  const std::byte* from = sum.contributions[rank] + begin * size_of(sum.input_type);
  switch (sum.input_type) {
    case DType::bf16:
      if (wire == DType::f16)
        round_leaf<ElementBf16, ElementF16>(from, count, scratch);
      else
        widen_leaf<ElementBf16>(from, count, scratch);
      return scratch;
    case DType::f16:
      if (wire == DType::bf16)
        round_leaf<ElementF16, ElementBf16>(from, count, scratch);
      else
        widen_leaf<ElementF16>(from, count, scratch);
      return scratch;
    default:
      if (wire == DType::f32) return reinterpret_cast<const float*>(from);
      if (wire == DType::f16)
        round_leaf<ElementF32, ElementF16>(from, count, scratch);
      else
        round_leaf<ElementF32, ElementBf16>(from, count, scratch);
      return scratch;
  }
}

/// Adds groups of leaves to partial sums on a stack, and two of equal size to one, as a binary
/// counter carries. At the end it adds up the rest from the right, which skips the missing leaves.
void sum_block(const OrderedSum& sum, std::int64_t begin, std::int64_t count) {
  alignas(64) float scratch[kGroup][kBlock];
  alignas(64) float partial[kMaxPartials][kBlock];
  int sizes[kMaxPartials];
  int depth = 0;
  float* out = sum.out + begin;
  for (int rank = 0; rank < sum.ranks;) {
    const int size = sum.ranks - rank < kGroup ? sum.ranks - rank : kGroup;
    const float* leaves[kGroup];
    for (int i = 0; i < size; ++i) leaves[i] = leaf(sum, rank + i, begin, count, scratch[i]);
    if (size == sum.ranks) return finish(sum, leaves, size, count, out);
    add_function<false>(size)(leaves, count, 1, partial[depth]);
    rank += size;
    sizes[depth] = size;
    for (; depth > 0 && sizes[depth - 1] == sizes[depth] && rank < sum.ranks; --depth) {
      const float* pair[2] = {partial[depth - 1], partial[depth]};
      add_leaves<2, false>(pair, count, 1, partial[depth - 1]);
      sizes[depth - 1] *= 2;
    }
    ++depth;
  }
  for (--depth; depth > 0; --depth) {
    const float* pair[2] = {partial[depth - 1], partial[depth]};
    if (depth == 1) return finish(sum, pair, 2, count, out);
    add_leaves<2, false>(pair, count, 1, partial[depth - 1]);
  }
}

void sum_range(const OrderedSum& sum, std::int64_t begin, std::int64_t end) {
  for (std::int64_t at = begin; at < end; at += kBlock)
    sum_block(sum, at, end - at < kBlock ? end - at : kBlock);
  if (sum.stream) hwy::FlushStream();
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
namespace {
HWY_EXPORT(sum_range);

bool is_float(DType type) {
  return type == DType::f32 || type == DType::bf16 || type == DType::f16;
}

bool worth_streaming(std::span<const std::byte* const> contributions, std::int64_t count,
                     const float* out) {
  const auto* bytes = reinterpret_cast<const std::byte*>(out);
  const bool in_place =
      std::find(contributions.begin(), contributions.end(), bytes) != contributions.end();
  const bool aligned = reinterpret_cast<std::uintptr_t>(out) % 64 == 0;
  return count >= kStreamElements && aligned && !in_place;
}
}  // namespace

void ordered_sum(ThreadPool* pool, std::span<const std::byte* const> contributions,
                 DType input_type, DType wire_type, std::int64_t count, float scale, float* out) {
  STRATA_CHECK(!contributions.empty() && contributions.size() <= kMaxContributions, "contributions",
               contributions.size());
  STRATA_CHECK(is_float(input_type) && is_float(wire_type), "cannot add", name_of(input_type), "as",
               name_of(wire_type));
  const OrderedSum sum{contributions.data(),
                       static_cast<int>(contributions.size()),
                       input_type,
                       wire_type,
                       scale,
                       out,
                       worth_streaming(contributions, count, out)};
  for_each_range(pool, count, kTaskElements, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(sum_range)(sum, begin, end);
  });
}

void convert_to_wire(ThreadPool* pool, DType input_type, const std::byte* from, DType wire_type,
                     std::int64_t count, std::byte* to) {
  for_each_range(pool, count, kTaskElements, [&](std::int64_t begin, std::int64_t end) {
    convert_range(input_type, from + begin * size_of(input_type), wire_type,
                  to + begin * size_of(wire_type), end - begin);
  });
}

}  // namespace strata::kernels
#endif
