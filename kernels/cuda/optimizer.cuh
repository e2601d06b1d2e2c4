// The kernel of optimizers for all formats of their state (kernels/ops/optimizer_operands.h), with
// the bits of the CPU: every operation is rounded by itself.
//
// Memory is the bound unless random numbers are drawn: each operand is read once and written once,
// and each thread has 16 bytes of the widest operand under way. With bf16 moments an element takes
// some 110 instructions, a fifth of them for random numbers; they may take longer than moving the
// bytes where memory is fast compared with the cores (sm_90a).
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/flat.cuh"
#include "kernels/cuda/parameter_output.cuh"
#include "kernels/cuda/predicate.cuh"
#include "kernels/cuda/random.cuh"
#include "kernels/math/stochastic_rounding.h"
#include "kernels/ops/step_state.h"

namespace strata::cuda {

/// The format of what is updated: the type of its elements, and if a remainder belongs to it
/// (kPacked) or random bits round it (kStochastic).
struct FullMaster {
  using Element = float;
  static constexpr bool kPacked = false, kStochastic = false;
};
struct PackedMaster {
  using Element = Bf16;
  static constexpr bool kPacked = true, kStochastic = false;
};
struct StochasticParameter {
  using Element = Bf16;
  static constexpr bool kPacked = false, kStochastic = true;
};

/// The formats of a call. `Moment` is float or Bf16; `Parameter` may be NoParameter.
template <typename MasterT, typename MomentT, typename GradientT, typename ParameterT>
struct OptimizerFormats {
  using Master = MasterT;
  using Moment = MomentT;
  using Gradient = GradientT;
  using Parameter = ParameterT;
  static constexpr bool kStochasticMoments = std::is_same_v<Moment, Bf16>;
  static constexpr bool kStochastic = Master::kStochastic || kStochasticMoments;
  /// The number of elements in 16 bytes of the widest operand.
  static constexpr int kPack = sizeof(typename Master::Element) == 4 || sizeof(Moment) == 4 ||
                                       sizeof(Gradient) == 4 || sizeof(Parameter) == 4
                                   ? 4
                                   : 8;
};

template <typename Formats, typename Update>
struct OptimizerArguments {
  using MasterElement = typename Formats::Master::Element;
  const MasterElement* master_in;
  const std::int16_t* remainder_in;
  const typename Formats::Moment* moment_in[Update::kMoments];
  const typename Formats::Gradient* gradient;
  MasterElement* master;
  std::int16_t* remainder;
  typename Formats::Moment* moment[Update::kMoments];
  typename Formats::Parameter* parameter;
  const kernels::StepControl* control;
  const std::int64_t* rng;
  const std::uint32_t* predicate;
  typename Update::Settings settings;
  std::int64_t key;
  std::uint64_t first;
  FlatRange range;
};

/// Makes the random words of W positions from `position` on. W is 1, or 4 divides both.
template <int W>
STRATA_DEVICE void stochastic_words(std::uint32_t (&words)[W], const kernels::RandomSource& source,
                                    std::uint64_t position) {
  static_assert(W == 1 || W % 4 == 0);
  if constexpr (W == 1) {
    const kernels::PhiloxBlock block = random_words(source, position / 4);
    // Selecting avoids an index into `block`: registers cannot be indexed at run time.
    const std::uint32_t even = position % 4 < 2 ? block[0] : block[2];
    const std::uint32_t odd = position % 4 < 2 ? block[1] : block[3];
    words[0] = position % 2 == 0 ? even : odd;
  } else {
#pragma unroll
    for (int i = 0; i < W; i += 4) {
      const kernels::PhiloxBlock block =
          random_words(source, position / 4 + static_cast<std::uint64_t>(i / 4));
#pragma unroll
      for (int j = 0; j < 4; ++j) words[i + j] = block[static_cast<std::size_t>(j)];
    }
  }
}

template <typename Formats, typename Update, int N>
struct Optimizer {
  static constexpr int kThreads = kFlatThreads;
  static constexpr int kMoments = Update::kMoments;
  using Arguments = OptimizerArguments<Formats, Update>;
  using Master = typename Formats::Master;

  template <int W>
  static STRATA_DEVICE void update(const Arguments& x, std::int64_t at) {
    const auto gradient = load_once<W>(x.gradient + at);
    auto master = load_once<W>(x.master_in + at);
    Pack<std::int16_t, W> remainder;
    if constexpr (Master::kPacked) remainder = load_once<W>(x.remainder_in + at);
    Pack<typename Formats::Moment, W> moments[kMoments];
#pragma unroll
    for (int k = 0; k < kMoments; ++k) moments[k] = load_once<W>(x.moment_in[k] + at);
    const auto now = Update::at(x.settings, *x.control);
    kernels::RandomSource source;
    if constexpr (Formats::kStochastic)
      source = {x.rng[0], x.rng[1], kernels::kStochasticSample, x.key};
    if (!holds(x.predicate)) return;
    std::uint32_t words[W];
    if constexpr (Formats::kStochastic)
      stochastic_words<W>(words, source, x.first + static_cast<std::uint64_t>(at));
#pragma unroll
    for (int i = 0; i < W; ++i) {
      float p;
      if constexpr (Master::kPacked)
        p = kernels::master_from_parts(master.v[i].bits, remainder.v[i]);
      else
        p = to_float(master.v[i]);
      float m[kMoments];
#pragma unroll
      for (int k = 0; k < kMoments; ++k) m[k] = to_float(moments[k].v[i]);
      Update::element(x.settings, now, to_float(gradient.v[i]), p, m);
      kernels::StochasticBits bits{};
      if constexpr (Formats::kStochastic) bits = kernels::stochastic_bits(words[i]);
      if constexpr (Master::kPacked) {
        master.v[i] = {kernels::master_to_bf16(p)};
        remainder.v[i] = kernels::master_remainder(p);
      } else if constexpr (Master::kStochastic) {
        master.v[i] = {kernels::f32_to_bf16_stochastic(p, bits.parameter)};
      } else {
        master.v[i] = p;
      }
#pragma unroll
      for (int k = 0; k < kMoments; ++k) {
        if constexpr (Formats::kStochasticMoments)
          moments[k].v[i] = {kernels::f32_to_bf16_stochastic(m[k], k == 0 ? bits.m : bits.v)};
        else
          moments[k].v[i] = m[k];
      }
    }
    store<W>(x.master + at, master);
    if constexpr (Master::kPacked) store<W>(x.remainder + at, remainder);
#pragma unroll
    for (int k = 0; k < kMoments; ++k) store<W>(x.moment[k] + at, moments[k]);
    if constexpr (std::is_same_v<Master, FullMaster>) store_parameter<W>(x.parameter, at, master);
  }

  static STRATA_DEVICE void run(const Arguments& x) {
    for_my_pack<N>(x.range, [&]<int W>(std::int64_t at) { update<W>(x, at); });
  }
};

/// Enqueues the kernel of a call whose formats are known.
template <typename Formats, typename Update>
void start_optimizer(kernels::Stream& stream, const kernels::KernelCall& call,
                     const typename Update::Settings& settings) {
  using Arguments = OptimizerArguments<Formats, Update>;
  using Element = typename Arguments::MasterElement;
  const auto &in = call.inputs, &out = call.outputs;
  constexpr std::size_t kFirst = Formats::Master::kPacked ? 2 : 1;
  constexpr std::size_t kStates = kFirst + Update::kMoments;
  Arguments x{};
  x.master_in = in[0].template row<const Element>();
  x.master = out[0].template row<Element>();
  if constexpr (Formats::Master::kPacked) {
    x.remainder_in = in[1].template row<const std::int16_t>();
    x.remainder = out[1].template row<std::int16_t>();
  }
  for (std::size_t k = 0; k < Update::kMoments; ++k) {
    x.moment_in[k] = in[kFirst + k].template row<const typename Formats::Moment>();
    x.moment[k] = out[kFirst + k].template row<typename Formats::Moment>();
  }
  x.gradient = in[kStates].template row<const typename Formats::Gradient>();
  if constexpr (!std::is_same_v<typename Formats::Parameter, NoParameter>)
    x.parameter = out[kStates].template row<typename Formats::Parameter>();
  x.control = reinterpret_cast<const kernels::StepControl*>(in[kStates + 1].data);
  x.predicate = call.predicate;
  x.settings = settings;
  x.range.count = in[0].elements();
  if constexpr (Formats::kStochastic) {
    x.rng = in[kStates + 2].template row<const std::int64_t>();
    x.key = call.attributes.integer("key");
    x.first = static_cast<std::uint64_t>(call.attributes.integer("first", 0));
  }
  constexpr int kPack = Formats::kPack;
  bool fits = flat_packs_fit(x.range, kPack, in.first(kStates + 1), out);
  // Packs must begin and end with blocks of random words, too.
  if (Formats::kStochastic && (x.first - static_cast<std::uint64_t>(x.range.lead)) % 4 != 0)
    fits = false;
  if (fits) {
    launch<Optimizer<Formats, Update, kPack>>(stream, flat_launch(x.range, kPack), x);
  } else {
    x.range.lead = 0;
    launch<Optimizer<Formats, Update, 1>>(stream, flat_launch(x.range, 1), x);
  }
}

/// Enqueues the kernel for the gradient's type.
template <typename Update, typename Master, typename Moment, typename Parameter>
void choose_gradient(kernels::Stream& stream, const kernels::KernelCall& call,
                     const typename Update::Settings& settings) {
  constexpr std::size_t kStates = (Master::kPacked ? 2 : 1) + Update::kMoments;
  with_float_type(call.inputs[kStates].dtype(), [&](auto gradient) {
    start_optimizer<OptimizerFormats<Master, Moment, decltype(gradient), Parameter>, Update>(
        stream, call, settings);
  });
}

/// Runs an optimizer with a master copy. `Update` is the optimizer: it has Settings, kMoments,
/// at(settings, control) and element(settings, at, gradient, p, moments).
template <typename Update>
void run_optimizer(kernels::Stream& stream, const kernels::KernelCall& call,
                   const typename Update::Settings& settings) {
  with_parameter_type(call, 1 + Update::kMoments, [&](auto parameter, const kernels::Tensor&) {
    using Parameter = decltype(parameter);
    if (call.inputs[1].dtype() == DType::bf16)
      choose_gradient<Update, FullMaster, Bf16, Parameter>(stream, call, settings);
    else
      choose_gradient<Update, FullMaster, float, Parameter>(stream, call, settings);
  });
}

/// Runs an optimizer with a packed master.
template <typename Update>
void run_packed_optimizer(kernels::Stream& stream, const kernels::KernelCall& call,
                          const typename Update::Settings& settings) {
  if (call.inputs[2].dtype() == DType::bf16)
    choose_gradient<Update, PackedMaster, Bf16, NoParameter>(stream, call, settings);
  else
    choose_gradient<Update, PackedMaster, float, NoParameter>(stream, call, settings);
}

}  // namespace strata::cuda
