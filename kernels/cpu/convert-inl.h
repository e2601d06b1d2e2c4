// Loads and stores rows of any float type as fp32, inlined into kernels, with the bits of
// kernels/math/float16.h; stores round to nearest even.

#if defined(STRATA_KERNELS_CPU_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_CONVERT_INL_H_
#undef STRATA_KERNELS_CPU_CONVERT_INL_H_
#else
#define STRATA_KERNELS_CPU_CONVERT_INL_H_
#endif

#include <cstddef>

#include "core/check.h"
#include "core/dtype.h"
#include "kernels/cpu/float16_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {

template <class Element>
HWY_INLINE void load_elements(const std::byte* from, float* to, std::int64_t n) {
  const auto* elements = reinterpret_cast<const typename Element::Storage*>(from);
  for_each_vector(n, [=](auto d, std::int64_t i)
                         HWY_ATTR { hn::StoreU(Element::load(d, elements + i), d, to + i); });
}

template <class Element>
HWY_INLINE void store_elements(const float* from, std::byte* to, std::int64_t n) {
  auto* elements = reinterpret_cast<typename Element::Storage*>(to);
  for_each_vector(n, [=](auto d, std::int64_t i)
                         HWY_ATTR { Element::store(d, hn::LoadU(d, from + i), elements + i); });
}

/// Loads n elements of `type` (fp32, bf16, fp16) as fp32.
HWY_INLINE void load_row(const std::byte* from, DType type, float* to, std::int64_t n) {
  if (type == DType::f32)
    load_elements<ElementF32>(from, to, n);
  else if (type == DType::bf16)
    load_elements<ElementBf16>(from, to, n);
  else if (type == DType::f16)
    load_elements<ElementF16>(from, to, n);
  else
    STRATA_CHECK(false, "no float type:", name_of(type));
}

/// Stores n fp32 numbers as elements of `type`, to nearest even.
HWY_INLINE void store_row(const float* from, std::byte* to, DType type, std::int64_t n) {
  if (type == DType::f32)
    store_elements<ElementF32>(from, to, n);
  else if (type == DType::bf16)
    store_elements<ElementBf16>(from, to, n);
  else if (type == DType::f16)
    store_elements<ElementF16>(from, to, n);
  else
    STRATA_CHECK(false, "no float type:", name_of(type));
}

}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
