#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/simd_targets.h"
#include "kernels/cpu/step_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/accumulate.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"
#include "kernels/cpu/float16_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

template <class X>
void add_loop(const float* sum, const std::byte* x_bytes, float* out, std::int64_t count) {
  const auto* x = reinterpret_cast<const typename X::Storage*>(x_bytes);
  for_each_vector(count, [&](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, sum + i), X::load(d, x + i)), d, out + i);
  });
}

void add_range(DType x_type, const float* sum, const std::byte* x, float* out, std::int64_t count) {
  if (x_type == DType::bf16) return add_loop<ElementBf16>(sum, x, out, count);
  if (x_type == DType::f16) return add_loop<ElementF16>(sum, x, out, count);
  return add_loop<ElementF32>(sum, x, out, count);
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
  for_each_run(&cpu(stream).pool(), {&sum, &x, &out},
               [&](std::int64_t row, std::int64_t col, std::int64_t count) {
                 HWY_DYNAMIC_DISPATCH(add_range)
                 (x.dtype(), reinterpret_cast<const float*>(element(sum, row, col)),
                  element(x, row, col), reinterpret_cast<float*>(element(out, row, col)), count);
               });
}

}  // namespace strata::kernels
#endif
