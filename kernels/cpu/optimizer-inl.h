// The loop of every optimizer: it loads a vector of each operand as fp32, whatever its format,
// calls the update and stores what changed. It is one pass over all operands, because memory is
// what takes the time.

// Compiled once per Highway target, hence the toggling guard.
#if defined(STRATA_KERNELS_CPU_OPTIMIZER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_OPTIMIZER_INL_H_
#undef STRATA_KERNELS_CPU_OPTIMIZER_INL_H_
#else
#define STRATA_KERNELS_CPU_OPTIMIZER_INL_H_
#endif

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/cpu/float16_simd-inl.h"
#include "kernels/cpu/optimizer_range.h"
#include "kernels/cpu/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::kernels::HWY_NAMESPACE {

/// Elements whose random words are on the stack at a time.
constexpr std::int64_t kRandomPiece = 256;

/// Return the random bits of one vector, as in stochastic_rounding.h; `kIndex` 0 is m, 1 is v.
template <class D>
HWY_INLINE hn::Vec<U32<D>> parameter_bits(D, hn::Vec<U32<D>> word) {
  return hn::ShiftRight<16>(word);
}
template <std::size_t kIndex, class D>
HWY_INLINE hn::Vec<U32<D>> moment_bits(D, hn::Vec<U32<D>> word) {
  const U32<D> du;
  if constexpr (kIndex == 0)
    return hn::And(word, hn::Set(du, 0xFFFF));
  else
    return hn::ShiftRight<16>(hn::Mul(word, hn::Set(du, kStochasticHash)));
}

/// Stores what f32_to_bf16_stochastic of kernels/math/float16.h makes of each lane.
template <class D>
HWY_INLINE void store_stochastic(D d, hn::Vec<D> value, hn::Vec<U32<D>> random, std::uint16_t* to) {
  const U32<D> du;
  const auto bits = hn::BitCast(du, value);
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, random));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(du, 0x40));
  store_low_halves(d, hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), quiet, rounded), to);
}

// Formats of masters or parameters. `word` has random words if the format is stochastic.

struct MasterF32 {
  static constexpr bool kStochastic = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const OptimizerRange& r, std::int64_t i) {
    return hn::LoadU(d, reinterpret_cast<const float*>(r.master_in) + i);
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> value, hn::Vec<U32<D>>, const OptimizerRange& r,
                               std::int64_t i) {
    hn::StoreU(value, d, reinterpret_cast<float*>(r.master) + i);
  }
};

/// The bf16 parameter and the remainder (master_remainder in kernels/math/float16.h).
struct MasterPacked {
  static constexpr bool kStochastic = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const OptimizerRange& r, std::int64_t i) {
    const hn::Rebind<std::int16_t, D> d16;
    const hn::RebindToSigned<D> di;
    const U32<D> du;
    const auto parameter = load_halves(d, reinterpret_cast<const std::uint16_t*>(r.master_in) + i);
    const auto remainder = hn::PromoteTo(
        di, hn::LoadU(d16, reinterpret_cast<const std::int16_t*>(r.remainder_in) + i));
    return hn::BitCast(d, hn::Add(hn::ShiftLeft<16>(parameter), hn::BitCast(du, remainder)));
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> value, hn::Vec<U32<D>>, const OptimizerRange& r,
                               std::int64_t i) {
    const U32<D> du;
    ElementBf16Master::store(d, value, reinterpret_cast<std::uint16_t*>(r.master) + i);
    const auto low = hn::And(hn::BitCast(du, value), hn::Set(du, 0xFFFF));
    store_low_halves(d, hn::IfThenZeroElse(hn::RebindMask(du, hn::IsNaN(value)), low),
                     reinterpret_cast<std::uint16_t*>(r.remainder) + i);
  }
};

struct MasterStochastic {
  static constexpr bool kStochastic = true;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const OptimizerRange& r, std::int64_t i) {
    return ElementBf16::load(d, reinterpret_cast<const std::uint16_t*>(r.master_in) + i);
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> value, hn::Vec<U32<D>> word, const OptimizerRange& r,
                               std::int64_t i) {
    store_stochastic(d, value, parameter_bits(d, word),
                     reinterpret_cast<std::uint16_t*>(r.master) + i);
  }
};

// Formats of a moment.

struct MomentF32 {
  static constexpr bool kStochastic = false;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::byte* from, std::int64_t i) {
    return hn::LoadU(d, reinterpret_cast<const float*>(from) + i);
  }
  template <std::size_t, class D>
  static HWY_INLINE void store(D d, hn::Vec<D> value, hn::Vec<U32<D>>, std::byte* to,
                               std::int64_t i) {
    hn::StoreU(value, d, reinterpret_cast<float*>(to) + i);
  }
};

struct MomentBf16 {
  static constexpr bool kStochastic = true;
  template <class D>
  static HWY_INLINE hn::Vec<D> load(D d, const std::byte* from, std::int64_t i) {
    return ElementBf16::load(d, reinterpret_cast<const std::uint16_t*>(from) + i);
  }
  template <std::size_t kIndex, class D>
  static HWY_INLINE void store(D d, hn::Vec<D> value, hn::Vec<U32<D>> word, std::byte* to,
                               std::int64_t i) {
    store_stochastic(d, value, moment_bits<kIndex>(d, word),
                     reinterpret_cast<std::uint16_t*>(to) + i);
  }
};

// Types of the parameter that is written beside a master.

struct NoParameter {
  template <class D>
  static HWY_INLINE void store(D, hn::Vec<D>, std::byte*, std::int64_t, bool) {}
  static constexpr std::size_t kBytes = 1;
};

/// Stores go past the caches (`stream`) if vectors are aligned: this pass does not read the
/// parameter, and a cache line that is written in parts would be fetched first.
template <class Element>
struct ParameterOf {
  using Storage = typename Element::Storage;
  static constexpr std::size_t kBytes = sizeof(Storage);
  template <class D>
  static HWY_INLINE void store(D d, hn::Vec<D> value, std::byte* to, std::int64_t i, bool stream) {
    auto* at = reinterpret_cast<Storage*>(to) + i;
    if constexpr (hn::MaxLanes(D()) * sizeof(Storage) >= 16) {
      if (stream) return store_past_caches(d, value, at);
    }
    Element::store(d, value, at);
  }

 private:
  template <class D>
  static HWY_INLINE void store_past_caches(D d, hn::Vec<D> value, Storage* to) {
    if constexpr (sizeof(Storage) == 2) {
      const hn::Rebind<std::uint16_t, D> d16;
      const hn::RebindToSigned<D> di;
      hn::Stream(hn::DemoteTo(d16, hn::BitCast(di, Element::round(d, value))), d16, to);
    } else {
      hn::Stream(value, d, to);
    }
  }
};

/// True if vectors of parameters are aligned, so that they may go past the caches.
template <class Parameter>
HWY_INLINE bool parameter_vectors_fit(const OptimizerRange& r) {
  const std::size_t bytes = hn::Lanes(hn::ScalableTag<float>()) * Parameter::kBytes;
  return reinterpret_cast<std::uintptr_t>(r.parameter) % bytes == 0;
}

template <class Master, class Moment, class Gradient, class Parameter>
struct Formats {
  using MasterAccess = Master;
  using MomentAccess = Moment;
  using GradientElement = Gradient;
  using ParameterAccess = Parameter;
  static constexpr bool kStochastic = Master::kStochastic || Moment::kStochastic;
};

template <class F, class D, class Update>
HWY_INLINE void update_vector(D d, const OptimizerRange& r, std::int64_t i, hn::Vec<U32<D>> word,
                              bool stream, const Update& update) {
  using Gradient = typename F::GradientElement;
  using Moment = typename F::MomentAccess;
  auto p = F::MasterAccess::load(d, r, i);
  hn::Vec<D> moments[std::max<std::size_t>(Update::kMoments, 1)];
  for (std::size_t k = 0; k < Update::kMoments; ++k)
    moments[k] = Moment::load(d, r.moment_in[k], i);
  const auto* gradient = reinterpret_cast<const typename Gradient::Storage*>(r.gradient);
  update(d, Gradient::load(d, gradient + i), p, moments);
  F::MasterAccess::store(d, p, word, r, i);
  F::ParameterAccess::store(d, p, r.parameter, i, stream);
  if constexpr (Update::kMoments > 0)
    Moment::template store<0>(d, moments[0], word, r.moment[0], i);
  if constexpr (Update::kMoments > 1)
    Moment::template store<1>(d, moments[1], word, r.moment[1], i);
}

template <class F, class Update>
HWY_NOINLINE void update_formats(OptimizerRange r, const Update update) {
  const bool stream = parameter_vectors_fit<typename F::ParameterAccess>(r);
  if constexpr (F::kStochastic) {
    // Room for a piece, the rest of its first block, and a whole last vector of blocks.
    HWY_ALIGN std::uint32_t words[kRandomPiece + 4 + 4 * kBlock];
    const auto skipped = static_cast<std::int64_t>(r.position % 4);
    for (std::int64_t begin = 0; begin < r.count; begin += kRandomPiece) {
      const std::int64_t count = std::min(kRandomPiece, r.count - begin);
      philox_row(r.source, (r.position + static_cast<std::uint64_t>(begin)) / 4,
                 (skipped + count + 3) / 4, words);
      for_each_vector(count, [&](auto d, std::int64_t i) HWY_ATTR {
        const U32<decltype(d)> du;
        update_vector<F>(d, r, begin + i, hn::LoadU(du, words + skipped + i), stream, update);
      });
    }
  } else {
    for_each_vector(r.count, [&](auto d, std::int64_t i) HWY_ATTR {
      update_vector<F>(d, r, i, hn::Zero(U32<decltype(d)>()), stream, update);
    });
  }
  hwy::FlushStream();  // other threads read the parameters after this task
}

// The functions below choose the loop for the combination of formats that a call has.

template <class Master, class Moment, class Gradient, class Update>
HWY_INLINE void choose_parameter(const OptimizerRange& r, const Update& update) {
  if (r.parameter == nullptr)
    update_formats<Formats<Master, Moment, Gradient, NoParameter>>(r, update);
  else if (r.parameter_dtype == DType::bf16)
    update_formats<Formats<Master, Moment, Gradient, ParameterOf<ElementBf16Master>>>(r, update);
  else if (r.parameter_dtype == DType::f16)
    update_formats<Formats<Master, Moment, Gradient, ParameterOf<ElementF16>>>(r, update);
  else
    update_formats<Formats<Master, Moment, Gradient, ParameterOf<ElementF32>>>(r, update);
}

template <class Moment, class Gradient, class Update>
HWY_INLINE void choose_master(const OptimizerRange& r, const Update& update) {
  if (r.format == UpdatedFormat::f32)
    choose_parameter<MasterF32, Moment, Gradient>(r, update);
  else if (r.format == UpdatedFormat::packed)
    update_formats<Formats<MasterPacked, Moment, Gradient, NoParameter>>(r, update);
  else if constexpr (Moment::kStochastic)
    update_formats<Formats<MasterStochastic, Moment, Gradient, NoParameter>>(r, update);
}

template <class Gradient, class Update>
HWY_INLINE void choose_moment(const OptimizerRange& r, const Update& update) {
  if constexpr (Update::kStochasticState) {
    if (r.moment_dtype == DType::bf16) return choose_master<MomentBf16, Gradient>(r, update);
  }
  choose_master<MomentF32, Gradient>(r, update);
}

/// Runs `update` over the elements of the range: update(d, gradient, p, moments) changes p and its
/// kMoments moments, vectors of d. kStochasticState says that the state may be bf16.
template <class Update>
HWY_INLINE void update_range(const OptimizerRange& r, const Update& update) {
  if (r.gradient_dtype == DType::bf16)
    choose_moment<ElementBf16>(r, update);
  else if (r.gradient_dtype == DType::f16)
    choose_moment<ElementF16>(r, update);
  else
    choose_moment<ElementF32>(r, update);
}

}  // namespace strata::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
