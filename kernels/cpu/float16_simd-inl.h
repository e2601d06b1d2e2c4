// Loads and stores fp32, bf16 and fp16 elements as vectors of fp32, with the bits of
// kernels/math/float16.h on every target (the hardware's conversions treat NaN, subnormal numbers
// and ties in their own ways, and not every target has them).

// Compiled once per Highway target, hence the toggling guard.
#if defined(STRATA_KERNELS_CPU_FLOAT16_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_FLOAT16_SIMD_INL_H_
#undef STRATA_KERNELS_CPU_FLOAT16_SIMD_INL_H_
#else
#define STRATA_KERNELS_CPU_FLOAT16_SIMD_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
using U32 = hn::RebindToUnsigned<D>;

/// Stores the low 16 bits of each lane.
template <class D>
HWY_INLINE void store_low_halves(D, hn::Vec<U32<D>> bits, std::uint16_t* to) {
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::RebindToSigned<D> di;
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, bits)), d16,
             to);  // lanes are < 65536: no saturation
}

template <class D>
HWY_INLINE hn::Vec<U32<D>> load_halves(D, const std::uint16_t* from) {
  const hn::Rebind<std::uint16_t, D> d16;
  return hn::PromoteTo(U32<D>(), hn::LoadU(d16, from));
}

struct ElementF32 {
  using Storage = float;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D df, const float* from) {
    return hn::LoadU(df, from);
  }
  template <class D>
  static HWY_INLINE void store(D df, hn::Vec<D> value, float* to) {
    hn::StoreU(value, df, to);
  }
};

/// Rounds ties away from zero if `kMaster`, else to even.
template <bool kMaster>
struct ElementBf16With {
  using Storage = std::uint16_t;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D df, const std::uint16_t* from) {
    return widen(df, load_halves(df, from));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> widen(D df, hn::Vec<U32<D>> bits) {
    return hn::BitCast(df, hn::ShiftLeft<16>(bits));
  }
  /// Returns the rounded number's bits in the low half of each lane.
  template <class D>
  static HWY_INLINE hn::Vec<U32<D>> round(D, hn::Vec<D> value) {
    const U32<D> du;
    const auto bits = hn::BitCast(du, value);
    const auto upper = hn::ShiftRight<16>(bits);
    auto increment = hn::Set(du, 0x8000);
    if constexpr (!kMaster)
      increment = hn::Add(hn::Set(du, 0x7FFF), hn::And(upper, hn::Set(du, 1)));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, increment));
    const auto quiet = hn::Or(upper, hn::Set(du, 0x40));
    return hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), quiet, rounded);
  }
  template <class D>
  static HWY_INLINE void store(D df, hn::Vec<D> value, std::uint16_t* to) {
    store_low_halves(df, round(df, value), to);
  }
};
using ElementBf16 = ElementBf16With<false>;
using ElementBf16Master = ElementBf16With<true>;

struct ElementF16 {
  using Storage = std::uint16_t;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D df, const std::uint16_t* from) {
    return widen(df, load_halves(df, from));
  }
  template <class D>
  static HWY_INLINE hn::Vec<D> widen(D df, hn::Vec<U32<D>> half) {
    const U32<D> du;
    const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(du, 0x8000)));
    const auto exponent = hn::And(half, hn::Set(du, 0x7C00));
    const auto shifted = hn::ShiftLeft<13>(hn::And(half, hn::Set(du, 0x7FFF)));
    const auto normal = hn::Add(shifted, hn::Set(du, 112u << 23));
    const auto special = hn::Or(shifted, hn::Set(du, 0x7F800000));
    // A subnormal number is its mantissa below the exponent of 2^-14, less 2^-14: exact.
    const auto subnormal =
        hn::BitCast(du, hn::Sub(hn::BitCast(df, hn::Add(shifted, hn::Set(du, 113u << 23))),
                                hn::BitCast(df, hn::Set(du, 113u << 23))));
    auto magnitude = hn::IfThenElse(hn::Eq(exponent, hn::Set(du, 0x7C00)), special, normal);
    magnitude = hn::IfThenElse(hn::Eq(exponent, hn::Zero(du)), subnormal, magnitude);
    return hn::BitCast(df, hn::Or(magnitude, sign));
  }
  template <class D>
  static HWY_INLINE hn::Vec<U32<D>> round(D df, hn::Vec<D> value) {
    const U32<D> du;
    const hn::RebindToSigned<D> di;
    const auto bits = hn::BitCast(du, value);
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 0x8000));
    const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFF));
    const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
    // 0 - 0x38000000 takes 112 from the exponent.
    const auto normal =
        hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, hn::Set(du, 0xC8000FFFu)), odd));
    // Adding 0.5 puts the unit of the last place at 2^-24: the addition rounds to nearest even.
    const auto half = hn::Set(df, 0.5F);
    const auto subnormal =
        hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(df, magnitude), half)), hn::BitCast(du, half));
    const auto quiet =
        hn::Or(hn::Set(du, 0x7E00), hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x3FF)));
    // Magnitudes are below 2^31, so signed comparisons (which every target has) will do.
    const auto signed_magnitude = hn::BitCast(di, magnitude);
    const auto small = hn::RebindMask(du, hn::Lt(signed_magnitude, hn::Set(di, 0x38800000)));
    const auto large = hn::RebindMask(du, hn::Gt(signed_magnitude, hn::Set(di, 0x477FFFFF)));
    auto result = hn::IfThenElse(small, subnormal, normal);
    result = hn::IfThenElse(large, hn::Set(du, 0x7C00), result);
    result = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), quiet, result);
    return hn::Or(result, sign);
  }
  template <class D>
  static HWY_INLINE void store(D df, hn::Vec<D> value, std::uint16_t* to) {
    store_low_halves(df, round(df, value), to);
  }
};

/// Calls body(d, i) for each whole vector d at element i, then for single lanes of the rest. Both
/// run the same body, so bits do not depend on the count.
template <class Body>
HWY_INLINE void for_each_vector(std::int64_t count, const Body& body) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) body(d, i);
  const hn::CappedTag<float, 1> one;
  for (; i < count; ++i) body(one, i);
}

}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
