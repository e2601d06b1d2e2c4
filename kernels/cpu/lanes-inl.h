// fp32 vectors in blocks of sixteen lanes, whatever the width of the machine's registers:
// reductions keep sixteen partial sums and add them in one fixed tree, so AVX2 and AVX-512 agree
// bit for bit. Included once per instruction set (Highway); everything here is inlined into
// kernels.

#if defined(STRATA_KERNELS_CPU_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_LANES_INL_H_
#undef STRATA_KERNELS_CPU_LANES_INL_H_
#else
#define STRATA_KERNELS_CPU_LANES_INL_H_
#endif

#include "hwy/highway.h"

#include <cstddef>
#include <cstdint>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::CappedTag<float, 16>;
using U = hn::RebindToUnsigned<F>;
using I = hn::RebindToSigned<F>;
using V = hn::Vec<F>;
constexpr std::size_t kBlock = 16;
constexpr std::size_t kLanes = HWY_LANES(float) < kBlock ? HWY_LANES(float) : kBlock;
constexpr std::size_t kParts = kBlock / kLanes;

HWY_INLINE V all(float value) { return hn::Set(F(), value); }

/// Lanes [i, i + kLanes) of a row: part `kPart` of its block of sixteen.
template <std::size_t kPart>
struct FullLanes {
  static constexpr std::size_t part = kPart;
  std::int64_t i;
  HWY_INLINE V load(const float* row) const { return hn::LoadU(F(), row + i); }
  HWY_INLINE void store(V value, float* row) const { hn::StoreU(value, F(), row + i); }
  /// Returns `value` as a summand.
  HWY_INLINE V summand(V value) const { return value; }
};

/// Lanes at the end of a row: those outside of it load zero, are not stored and do not enter sums.
template <std::size_t kPart>
struct LastLanes {
  static constexpr std::size_t part = kPart;
  std::int64_t i;
  std::size_t count;
  HWY_INLINE LastLanes(std::int64_t first, std::size_t n) : i(first), count(n) {}
#if HWY_TARGET <= HWY_AVX2
  HWY_INLINE V load(const float* row) const { return hn::MaskedLoad(inside(), F(), row + i); }
  HWY_INLINE void store(V value, float* row) const {
    hn::BlendedStore(value, inside(), F(), row + i);
  }
#else  // Highway's masked load touches all lanes and wants alignment without the instruction.
  HWY_INLINE V load(const float* row) const {
    HWY_ALIGN float lanes[kLanes] = {};
    for (std::size_t lane = 0; lane < count; ++lane)
      lanes[lane] = row[i + static_cast<std::int64_t>(lane)];
    return hn::Load(F(), lanes);
  }
  HWY_INLINE void store(V value, float* row) const {
    HWY_ALIGN float lanes[kLanes];
    hn::Store(value, F(), lanes);
    for (std::size_t lane = 0; lane < count; ++lane)
      row[i + static_cast<std::int64_t>(lane)] = lanes[lane];
  }
#endif
  HWY_INLINE V summand(V value) const { return hn::IfThenElseZero(inside(), value); }

 private:
  [[nodiscard]] HWY_INLINE hn::Mask<F> inside() const { return hn::FirstN(F(), count); }
};

template <class Body, std::size_t... kPart>
HWY_INLINE void full_block(std::int64_t i, Body& body, std::index_sequence<kPart...>) {
  (body(FullLanes<kPart>{i + static_cast<std::int64_t>(kPart * kLanes)}), ...);
}

template <std::size_t kPart, class Body>
HWY_INLINE void last_part(std::int64_t i, std::int64_t n, Body& body) {
  const std::int64_t first = i + static_cast<std::int64_t>(kPart * kLanes);
  if (first >= n) return;
  const auto count = static_cast<std::size_t>(n - first);
  if (count >= kLanes)
    body(FullLanes<kPart>{first});
  else
    body(LastLanes<kPart>(first, count));
}

template <class Body, std::size_t... kPart>
HWY_INLINE void last_block(std::int64_t i, std::int64_t n, Body& body,
                           std::index_sequence<kPart...>) {
  (last_part<kPart>(i, n, body), ...);
}

/// Calls body(lanes) for all lanes of a row of n. Nothing is read or written outside the row.
template <class Body>
HWY_INLINE void for_lanes(std::int64_t n, Body body) {
  constexpr auto kBlockLength = static_cast<std::int64_t>(kBlock);
  std::int64_t i = 0;
  for (; i + kBlockLength <= n; i += kBlockLength)
    full_block(i, body, std::make_index_sequence<kParts>());
  if (i < n) last_block(i, n, body, std::make_index_sequence<kParts>());
}

/// Sixteen partial sums.
class Sum16 {
 public:
  HWY_INLINE Sum16() {
    for (V& part : parts_) part = hn::Zero(F());
  }
  template <class Lanes>
  HWY_INLINE void add(Lanes lanes, V value) {
    parts_[Lanes::part] = hn::Add(parts_[Lanes::part], lanes.summand(value));
  }
  /// Adds a * b with one rounding.
  template <class Lanes>
  HWY_INLINE void add_product(Lanes lanes, V a, V b) {
    parts_[Lanes::part] = hn::MulAdd(lanes.summand(a), b, parts_[Lanes::part]);
  }
  /// Adds partial sums i and i + 8, then i and i + 4, i + 2, i + 1.
  [[nodiscard]] HWY_INLINE float total() const {
    HWY_ALIGN float sums[kBlock];
    for (std::size_t part = 0; part < kParts; ++part)
      hn::Store(parts_[part], F(), sums + part * kLanes);
    for (std::size_t width = kBlock / 2; width > 0; width /= 2)
      for (std::size_t i = 0; i < width; ++i) sums[i] += sums[i + width];
    return sums[0];
  }

 private:
  V parts_[kParts];
};

}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
