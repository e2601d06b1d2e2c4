#include "kernels/adamw_bf16.h"

#include <cstring>

#include "kernels/cpu/cpu_stream.h"
#include "kernels/cpu/ranges.h"
#include "kernels/cpu/simd_targets.h"
#include "kernels/cpu/step_kernels.h"
#include "kernels/optimizer_settings.h"
#include "kernels/philox.h"
#include "kernels/step_state.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw_bf16.cpp"
#include "hwy/foreach_target.h"
// After foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"
#include "kernels/cpu/adamw-inl.h"
#include "kernels/cpu/float16_simd-inl.h"
#include "kernels/cpu/philox-inl.h"

#ifndef STRATA_KERNELS_CPU_ADAMW_BF16_ONCE
#define STRATA_KERNELS_CPU_ADAMW_BF16_ONCE
namespace strata::kernels {
namespace {

/// Elements whose random words lie on the stack at once.
constexpr std::int64_t kStochasticPiece = 1024;

/// At most kStochasticPiece elements.
struct Bf16Range {
  const std::uint16_t *parameter_in, *m_in, *v_in;
  const std::byte* gradient;
  DType gradient_dtype;
  std::uint16_t *parameter, *m, *v;
  std::uint64_t position;  ///< of the first element, in its unit
  std::int64_t count;
};

}  // namespace
}  // namespace strata::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

/// f32_to_bf16_stochastic of kernels/float16.h.
template <class D>
HWY_INLINE void store_stochastic(D d, hn::Vec<D> value, hn::Vec<U32<D>> random, std::uint16_t* to) {
  const U32<D> du;
  const auto bits = hn::BitCast(du, value);
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, random));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40));
  store_low_halves(d, hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), quiet, rounded), to);
}

template <class Gradient>
HWY_INLINE void update_range(const AdamwSettings& settings, const AdamwStep& now,
                             const std::uint32_t* words, const Bf16Range& r) {
  const auto* gradient = reinterpret_cast<const typename Gradient::Storage*>(r.gradient);
  for_each_vector(r.count, [&](auto d, std::int64_t i) HWY_ATTR {
    const U32<decltype(d)> du;
    auto p = ElementBf16::load(d, r.parameter_in + i);
    auto m = ElementBf16::load(d, r.m_in + i);
    auto v = ElementBf16::load(d, r.v_in + i);
    adamw_vector(d, settings, now, Gradient::load(d, gradient + i), p, m, v);
    const auto word = hn::LoadU(du, words + i);
    const auto hash = hn::Mul(word, hn::Set(du, kStochasticHash));
    store_stochastic(d, p, hn::ShiftRight<16>(word), r.parameter + i);
    store_stochastic(d, m, hn::And(word, hn::Set(du, 0xFFFF)), r.m + i);
    store_stochastic(d, v, hn::ShiftRight<16>(hash), r.v + i);
  });
}

void adamw_bf16_range(AdamwSettings settings, AdamwStep now, RandomSource source, Bf16Range r) {
  // A piece, the rest of its first block, a whole last vector of blocks.
  HWY_ALIGN std::uint32_t words[kStochasticPiece + 4 + 4 * kBlock];
  const auto skipped = static_cast<std::int64_t>(r.position % 4);
  philox_row(source, r.position / 4, (skipped + r.count + 3) / 4, words);
  if (r.gradient_dtype == DType::f32)
    update_range<ElementF32>(settings, now, words + skipped, r);
  else
    update_range<ElementBf16>(settings, now, words + skipped, r);
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
namespace {
HWY_EXPORT(adamw_bf16_range);
}  // namespace

void adamw_bf16_kernel(Stream& stream, const KernelCall& call) {
  StepControl control;
  std::memcpy(&control, call.inputs[4].data, sizeof control);
  const AdamwSettings settings = AdamwSettings::from(call.attributes);
  const AdamwStep now = AdamwStep::at(settings, control);
  const auto* rng = call.inputs[5].row<const std::int64_t>();
  const RandomSource source(rng[0], rng[1], kStochasticSample, call.attributes.integer("key"));
  const auto first = static_cast<std::uint64_t>(call.attributes.integer("first", 0));
  const Tensor& gradient = call.inputs[3];
  const auto in = [&](std::size_t i) { return call.inputs[i].row<const std::uint16_t>(); };
  const auto out = [&](std::size_t i) { return call.outputs[i].row<std::uint16_t>(); };
  const auto update = [&](std::int64_t at, std::int64_t count) {
    const Bf16Range range{in(0) + at,
                          in(1) + at,
                          in(2) + at,
                          gradient.data + at * size_of(gradient.dtype()),
                          gradient.dtype(),
                          out(0) + at,
                          out(1) + at,
                          out(2) + at,
                          first + static_cast<std::uint64_t>(at),
                          count};
    HWY_DYNAMIC_DISPATCH(adamw_bf16_range)(settings, now, source, range);
  };
  for_each_range(&cpu(stream).pool(), call.inputs[0].elements(), kTaskElements,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t at = begin; at < end; at += kStochasticPiece)
                     update(at, std::min(kStochasticPiece, end - at));
                 });
}

}  // namespace strata::kernels
#endif
