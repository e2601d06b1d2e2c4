#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/simd_targets.h"
#include "kernels/cpu/step_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/accumulate.cpp"
#include "hwy/foreach_target.h"
// The rest comes after foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"
#include "kernels/cpu/float16_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

template <class Sum, class X>
void add_loop(const std::byte* sum_bytes, const std::byte* x_bytes, std::byte* out_bytes,
              std::int64_t count, float scale) {
  const auto* sum = reinterpret_cast<const typename Sum::Storage*>(sum_bytes);
  const auto* x = reinterpret_cast<const typename X::Storage*>(x_bytes);
  auto* out = reinterpret_cast<typename Sum::Storage*>(out_bytes);
  for_each_vector(count, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto total = hn::Add(Sum::load(d, sum + i), X::load(d, x + i));
    // A scale of 1 changes no bit.
    Sum::store(d, hn::Mul(total, hn::Set(d, scale)), out + i);
  });
}

template <class Sum>
void add_typed(DType x_type, const std::byte* sum, const std::byte* x, std::byte* out,
               std::int64_t count, float scale) {
  if (x_type == DType::bf16) return add_loop<Sum, ElementBf16>(sum, x, out, count, scale);
  if (x_type == DType::f16) return add_loop<Sum, ElementF16>(sum, x, out, count, scale);
  return add_loop<Sum, ElementF32>(sum, x, out, count, scale);
}

void add_range(DType sum_type, DType x_type, const std::byte* sum, const std::byte* x,
               std::byte* out, std::int64_t count, float scale) {
  if (sum_type == DType::bf16) return add_typed<ElementBf16>(x_type, sum, x, out, count, scale);
  if (sum_type == DType::f16) return add_typed<ElementF16>(x_type, sum, x, out, count, scale);
  return add_typed<ElementF32>(x_type, sum, x, out, count, scale);
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
namespace {
HWY_EXPORT(add_range);
}  // namespace

void accumulate_kernel(Stream& stream, const KernelCall& call) {
  const Tensor& sum = call.inputs[0];
  const Tensor& x = call.inputs[1];
  const Tensor& out = call.outputs[0];
  const auto scale = static_cast<float>(call.attributes.real("scale", 1));
  for_each_run(&cpu(stream).pool(), {&sum, &x, &out},
               [&](std::int64_t row, std::int64_t col, std::int64_t count) {
                 HWY_DYNAMIC_DISPATCH(add_range)
                 (sum.dtype(), x.dtype(), element(sum, row, col), element(x, row, col),
                  element(out, row, col), count, scale);
               });
}

}  // namespace strata::kernels
#endif
