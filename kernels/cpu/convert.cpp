#include "kernels/cpu/convert.h"

#include <cstring>

#include "core/check.h"
#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/simd_targets.h"
#include "kernels/cpu/step_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/convert.cpp"
#include "hwy/foreach_target.h"
// The rest comes after foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"
#include "kernels/cpu/float16_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

template <class From, class To>
void convert_loop(const std::byte* from_bytes, std::byte* to_bytes, std::int64_t count) {
  const auto* from = reinterpret_cast<const typename From::Storage*>(from_bytes);
  auto* to = reinterpret_cast<typename To::Storage*>(to_bytes);
  for_each_vector(count, [&](auto d, std::int64_t i)
                             HWY_ATTR { To::store(d, From::load(d, from + i), to + i); });
}

void convert_from_f32(DType to_type, bool master, const std::byte* from, std::byte* to,
                      std::int64_t count) {
  if (to_type == DType::f16) return convert_loop<ElementF32, ElementF16>(from, to, count);
  if (master) return convert_loop<ElementF32, ElementBf16Master>(from, to, count);
  return convert_loop<ElementF32, ElementBf16>(from, to, count);
}

void convert_from_bf16(DType to_type, const std::byte* from, std::byte* to, std::int64_t count) {
  if (to_type == DType::f16) return convert_loop<ElementBf16, ElementF16>(from, to, count);
  return convert_loop<ElementBf16, ElementF32>(from, to, count);
}

void convert_from_f16(DType to_type, const std::byte* from, std::byte* to, std::int64_t count) {
  if (to_type == DType::bf16) return convert_loop<ElementF16, ElementBf16>(from, to, count);
  return convert_loop<ElementF16, ElementF32>(from, to, count);
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {

HWY_EXPORT(convert_from_f32);
HWY_EXPORT(convert_from_bf16);
HWY_EXPORT(convert_from_f16);

void convert_range(DType from_type, const std::byte* from, DType to_type, std::byte* to,
                   std::int64_t count, Rounding rounding) {
  if (from_type == to_type) {
    if (from != to && count > 0)
      std::memcpy(to, from, static_cast<std::size_t>(count * size_of(to_type)));
    return;
  }
  switch (from_type) {
    case DType::f32:
      return HWY_DYNAMIC_DISPATCH(convert_from_f32)(to_type, rounding == Rounding::master, from, to,
                                                    count);
    case DType::bf16:
      return HWY_DYNAMIC_DISPATCH(convert_from_bf16)(to_type, from, to, count);
    case DType::f16:
      return HWY_DYNAMIC_DISPATCH(convert_from_f16)(to_type, from, to, count);
    default:
      STRATA_CHECK(false, "no conversion from", name_of(from_type));
  }
}

void convert_kernel(Stream& stream, const KernelCall& call) {
  const Tensor& x = call.inputs[0];
  const Tensor& y = call.outputs[0];
  const Rounding rounding =
      call.attributes.integer("master", 0) != 0 ? Rounding::master : Rounding::nearest_even;
  for_each_run(&cpu(stream).pool(), {&x, &y},
               [&](std::int64_t row, std::int64_t col, std::int64_t count) {
                 convert_range(x.dtype(), element(x, row, col), y.dtype(), element(y, row, col),
                               count, rounding);
               });
}

}  // namespace strata::kernels
#endif
