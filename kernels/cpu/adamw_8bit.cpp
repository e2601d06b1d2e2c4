#include "kernels/ops/adamw_8bit.h"

#include "kernels/cpu/optimizer_range.h"
#include "kernels/cpu/simd_targets.h"
#include "kernels/cpu/step_kernels.h"
#include "kernels/math/dynamic_map.h"
#include "kernels/ops/optimizer_settings.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw_8bit.cpp"
#include "hwy/foreach_target.h"
// The rest comes after foreach_target.h, which includes this file again for every target.
#include "hwy/highway.h"
#include "kernels/cpu/adamw-inl.h"
#include "kernels/cpu/optimizer-inl.h"

#ifndef STRATA_KERNELS_CPU_ADAMW_8BIT_ONCE
#define STRATA_KERNELS_CPU_ADAMW_8BIT_ONCE
namespace strata::kernels {
namespace {

/// A moment of whole blocks: codes and scales before and after the update.
struct QuantizedMoment {
  const std::uint8_t* code_in;
  const float* scale_in;
  std::uint8_t* code;
  float* scale;
};

}  // namespace
}  // namespace strata::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {
namespace {

using Wide = hn::ScalableTag<float>;
using WideBits = hn::RebindToSigned<Wide>;
using Floats = hn::Vec<Wide>;
using Integers = hn::Vec<WideBits>;

/// Looks up, for each lane, the number of its stage of a dynamic map.
#if HWY_TARGET == HWY_AVX3  // all numbers fit in one register
template <class D, class T>
HWY_INLINE hn::Vec<D> of_stage(D d, const T (&numbers)[DynamicMap::kRoom], Integers stage) {
  return hn::TableLookupLanes(hn::LoadU(d, numbers), hn::IndicesFromVec(d, stage));
}
#elif HWY_TARGET == HWY_AVX2  // all numbers but the last fit
template <class D, class T>
HWY_INLINE hn::Vec<D> of_stage(D d, const T (&numbers)[DynamicMap::kRoom], Integers stage) {
  const WideBits di;
  const auto index = hn::IndicesFromVec(d, hn::And(stage, hn::Set(di, 7)));
  const auto last = hn::RebindMask(d, hn::Eq(stage, hn::Set(di, 8)));
  return hn::IfThenElse(last, hn::Set(d, numbers[8]),
                        hn::TableLookupLanes(hn::LoadU(d, numbers), index));
}
#else
template <class D, class T>
HWY_INLINE hn::Vec<D> of_stage(D d, const T (&numbers)[DynamicMap::kRoom], Integers stage) {
  auto number = hn::Set(d, numbers[0]);
  for (std::size_t s = 1; s < DynamicMap::kStages; ++s) {
    const auto here = hn::Eq(stage, hn::Set(WideBits(), static_cast<std::int32_t>(s)));
    number = hn::IfThenElse(hn::RebindMask(d, here), hn::Set(d, numbers[s]), number);
  }
  return number;
}
#endif

/// Computes magnitude_number of kernels/math/dynamic_map.h in each lane.
template <bool kSigned>
HWY_INLINE Integers magnitude_numbers(Floats y) {
  static constexpr DynamicMap map = DynamicMap::make(kSigned);
  const Wide d;
  const WideBits di;
  auto stage = hn::Zero(di);  // what exceeds no bound, a NaN too, stays 0
  for (std::size_t s = 1; s < DynamicMap::kStages; ++s)
    stage = hn::IfThenElse(hn::RebindMask(di, hn::Gt(y, hn::Set(d, map.above[s]))),
                           hn::Set(di, static_cast<std::int32_t>(s)), stage);
  y = hn::IfThenElseZero(hn::RebindMask(d, hn::Gt(stage, hn::Zero(di))), y);
  const auto place =
      hn::Sub(hn::Mul(y, of_stage(d, map.scale, stage)), of_stage(d, map.shift, stage));
  const auto k = hn::Max(hn::ConvertTo(di, place), hn::Zero(di));
  return hn::Add(of_stage(di, map.base, stage), hn::Min(k, of_stage(di, map.most, stage)));
}

/// Computes magnitude of kernels/math/dynamic_map.h in each lane. The numbers of a stage begin at a
/// power of two, so their exponent tells the stage.
template <bool kSigned>
HWY_INLINE Floats magnitudes(Integers number) {
  static constexpr DynamicMap map = DynamicMap::make(kSigned);
  const Wide d;
  const WideBits di;
  const auto t = hn::ConvertTo(d, number);
  const auto exponent = hn::ShiftRight<23>(hn::BitCast(di, t));
  const auto stage = hn::Max(hn::Sub(exponent, hn::Set(di, kSigned ? 126 : 127)), hn::Zero(di));
  return hn::Add(hn::Mul(t, of_stage(d, map.slope, stage)), of_stage(d, map.offset, stage));
}

template <bool kSigned>
HWY_INLINE Floats load_codes(const std::uint8_t* from) {
  const Wide d;
  const WideBits di;
  const hn::Rebind<std::uint8_t, Wide> d8;
  const auto code = hn::PromoteTo(di, hn::LoadU(d8, from));
  if constexpr (kSigned) {
    const auto above_least = hn::And(hn::Add(code, hn::Set(di, 127)), hn::Set(di, 255));
    const auto number = hn::Sub(above_least, hn::Set(di, 127));
    return hn::CopySign(magnitudes<true>(hn::Abs(number)), hn::ConvertTo(d, number));
  } else {
    return magnitudes<false>(hn::Add(code, hn::Set(di, 1)));
  }
}

template <bool kSigned>
HWY_INLINE void store_codes(Floats y, std::uint8_t* to) {
  const Wide d;
  const WideBits di;
  const hn::Rebind<std::uint8_t, Wide> d8;
  Integers code;
  if constexpr (kSigned) {
    const auto number = magnitude_numbers<true>(hn::Abs(y));
    const auto below = hn::RebindMask(di, hn::Lt(y, hn::Zero(d)));
    const auto negative = hn::Neg(hn::Min(number, hn::Set(di, 127)));
    code = hn::And(hn::IfThenElse(below, negative, number), hn::Set(di, 255));
  } else {
    code = hn::Sub(magnitude_numbers<false>(y), hn::Set(di, 1));
  }
  hn::StoreU(hn::DemoteTo(d8, code), d8, to);
}

/// The largest magnitude of a block, which is a NaN if there is one. It compares magnitudes as
/// integers: they have the order of the numbers, and NaN is above them.
struct Largest {
  Integers bits;

  HWY_INLINE Largest() : bits(hn::Zero(WideBits())) {}
  HWY_INLINE void add(Floats value) {
    bits = hn::Max(bits, hn::BitCast(WideBits(), hn::Abs(value)));
  }
  [[nodiscard]] HWY_INLINE float value() const {
    HWY_ALIGN std::int32_t lanes[HWY_LANES(std::int32_t)];
    hn::Store(bits, WideBits(), lanes);
    std::int32_t largest = 0;
    for (std::size_t i = 0; i < hn::Lanes(Wide()); ++i) largest = std::max(largest, lanes[i]);
    float value;
    std::memcpy(&value, &largest, sizeof value);
    return value;
  }
};

template <bool kSigned>
HWY_INLINE void quantize_block(const float* values, const Largest& largest, std::uint8_t* code,
                               float* scale) {
  const Wide d;
  *scale = largest.value();
  const auto divisor = hn::Set(d, *scale == 0 ? 1.0F : *scale);
  for (std::int64_t i = 0; i < kQuantizedBlock; i += static_cast<std::int64_t>(hn::Lanes(d)))
    store_codes<kSigned>(hn::Div(hn::Load(d, values + i), divisor), code + i);
}

/// Updates the blocks of `r`, which has no moments; m and v begin where it does.
template <class Gradient, class Parameter>
HWY_NOINLINE void update_blocks(const OptimizerRange r, const QuantizedMoment m,
                                const QuantizedMoment v, const AdamwUpdate update) {
  const Wide d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const bool stream = parameter_vectors_fit<Parameter>(r);
  const auto* gradient = reinterpret_cast<const typename Gradient::Storage*>(r.gradient);
  HWY_ALIGN float new_m[kQuantizedBlock];
  HWY_ALIGN float new_v[kQuantizedBlock];
  for (std::int64_t begin = 0; begin < r.count; begin += kQuantizedBlock) {
    const std::int64_t block = begin / kQuantizedBlock;
    const auto m_scale = hn::Set(d, m.scale_in[block]), v_scale = hn::Set(d, v.scale_in[block]);
    Largest largest_m, largest_v;
    for (std::int64_t i = 0; i < kQuantizedBlock; i += lanes) {
      Floats p = MasterF32::load(d, r, begin + i);
      Floats moments[2] = {hn::Mul(load_codes<true>(m.code_in + begin + i), m_scale),
                           hn::Mul(load_codes<false>(v.code_in + begin + i), v_scale)};
      update(d, Gradient::load(d, gradient + begin + i), p, moments);
      MasterF32::store(d, p, hn::Zero(U32<Wide>()), r, begin + i);
      Parameter::store(d, p, r.parameter, begin + i, stream);
      hn::Store(moments[0], d, new_m + i);
      hn::Store(moments[1], d, new_v + i);
      largest_m.add(moments[0]);
      largest_v.add(moments[1]);
    }
    quantize_block<true>(new_m, largest_m, m.code + begin, m.scale + block);
    quantize_block<false>(new_v, largest_v, v.code + begin, v.scale + block);
  }
  hwy::FlushStream();  // other threads read the parameters after this task
}

template <class Gradient>
HWY_INLINE void choose_output(const OptimizerRange& r, const QuantizedMoment& m,
                              const QuantizedMoment& v, const AdamwUpdate& update) {
  if (r.parameter == nullptr)
    update_blocks<Gradient, NoParameter>(r, m, v, update);
  else if (r.parameter_dtype == DType::bf16)
    update_blocks<Gradient, ParameterOf<ElementBf16Master>>(r, m, v, update);
  else if (r.parameter_dtype == DType::f16)
    update_blocks<Gradient, ParameterOf<ElementF16>>(r, m, v, update);
  else
    update_blocks<Gradient, ParameterOf<ElementF32>>(r, m, v, update);
}

void adamw_8bit_range(AdamwSettings settings, AdamwStep now, const OptimizerRange& range,
                      const QuantizedMoment& m, const QuantizedMoment& v) {
  const AdamwUpdate update{settings, now};
  if (range.gradient_dtype == DType::bf16)
    choose_output<ElementBf16>(range, m, v, update);
  else if (range.gradient_dtype == DType::f16)
    choose_output<ElementF16>(range, m, v, update);
  else
    choose_output<ElementF32>(range, m, v, update);
}

}  // namespace
}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::kernels {
namespace {
HWY_EXPORT(adamw_8bit_range);
}  // namespace

void adamw_8bit_kernel(Stream& stream, const KernelCall& call) {
  static_assert(kOptimizerTask % kQuantizedBlock == 0);
  const auto &in = call.inputs, &out = call.outputs;
  const AdamwSettings settings = AdamwSettings::from(call.attributes);
  StepControl control;
  std::memcpy(&control, in[6].data, sizeof control);
  const AdamwStep now = AdamwStep::at(settings, control);
  OptimizerRange range;
  range.master_in = in[0].data;
  range.master = out[0].data;
  range.gradient = in[5].data;
  range.gradient_dtype = in[5].dtype();
  if (out.size() > 5) {
    range.parameter = out[5].data;
    range.parameter_dtype = out[5].dtype();
  }
  range.count = in[0].elements();
  const auto moment = [&](std::size_t index, std::uint64_t at) {
    return QuantizedMoment{
        in[index].row<const std::uint8_t>() + at,
        in[index + 2].row<const float>() + at / kQuantizedBlock,
        out[index].row<std::uint8_t>() + at,
        out[index + 2].row<float>() + at / kQuantizedBlock,
    };
  };
  for_each_part(stream, range, [&](const OptimizerRange& part) {
    HWY_DYNAMIC_DISPATCH(adamw_8bit_range)
    (settings, now, part, moment(1, part.position), moment(2, part.position));
  });
}

}  // namespace strata::kernels
#endif
