// kernels/adamw_bf16.h on CUDA, with the bits of the CPU.
//
// 8 bytes read and 6 written per element (10 and 6 with an fp32 gradient), against some 110
// instructions, a fifth of them for random numbers: where memory is fast next to the cores
// (sm_90a), issuing those is likely to take longer than moving the bytes. Each thread has 64 bytes
// under way.
#include "kernels/adamw_bf16.h"

#include "kernels/cuda/adamw.cuh"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/flat.cuh"
#include "kernels/cuda/predicate.cuh"
#include "kernels/philox.h"
#include "kernels/stochastic_rounding.h"

namespace strata::cuda {
namespace {

using kernels::AdamwSettings;
using kernels::AdamwStep;
using kernels::RandomSource;
using kernels::StepControl;

template <typename Gradient>
struct AdamwBf16Arguments {
  const Bf16 *parameter_in, *m_in, *v_in;
  const Gradient* gradient;
  Bf16 *parameter, *m, *v;
  const StepControl* control;
  const std::int64_t* rng;
  const std::uint32_t* predicate;
  AdamwSettings settings;
  std::int64_t key;
  std::uint64_t first;
  FlatRange range;
};

/// Words of W positions from `position` on; a multiple of 4 when W is.
template <int W>
STRATA_DEVICE void random_words(std::uint32_t (&words)[W], const RandomSource& source,
                                std::uint64_t position) {
  static_assert(W == 1 || W % 4 == 0);
  if constexpr (W == 1) {
    const kernels::PhiloxBlock block = source.words(position / 4);
    // Registers have no index.
    const std::uint32_t even = position % 4 < 2 ? block[0] : block[2];
    const std::uint32_t odd = position % 4 < 2 ? block[1] : block[3];
    words[0] = position % 2 == 0 ? even : odd;
  } else {
#pragma unroll
    for (int i = 0; i < W; i += 4) {
      const kernels::PhiloxBlock block =
          source.words(position / 4 + static_cast<std::uint64_t>(i / 4));
#pragma unroll
      for (int j = 0; j < 4; ++j) words[i + j] = block[static_cast<std::size_t>(j)];
    }
  }
}

template <typename Gradient, int N>
struct AdamwBf16 {
  static constexpr int kThreads = kFlatThreads;

  template <int W>
  static STRATA_DEVICE void update(const AdamwBf16Arguments<Gradient>& x, std::int64_t at) {
    const auto gradient = load_once<W>(x.gradient + at);
    auto parameter = load_once<W>(x.parameter_in + at);
    auto m = load_once<W>(x.m_in + at);
    auto v = load_once<W>(x.v_in + at);
    const AdamwStep now = AdamwStep::at(x.settings, *x.control);
    const RandomSource source(x.rng[0], x.rng[1], kernels::kStochasticSample, x.key);
    if (!holds(x.predicate)) return;
    std::uint32_t words[W];
    random_words<W>(words, source, x.first + static_cast<std::uint64_t>(at));
#pragma unroll
    for (int i = 0; i < W; ++i) {
      float p = to_float(parameter.v[i]), new_m = to_float(m.v[i]), new_v = to_float(v.v[i]);
      adamw_element(x.settings, now, to_float(gradient.v[i]), p, new_m, new_v);
      const kernels::StochasticBits random = kernels::stochastic_bits(words[i]);
      parameter.v[i] = {kernels::f32_to_bf16_stochastic(p, random.parameter)};
      m.v[i] = {kernels::f32_to_bf16_stochastic(new_m, random.m)};
      v.v[i] = {kernels::f32_to_bf16_stochastic(new_v, random.v)};
    }
    store<W>(x.parameter + at, parameter);
    store<W>(x.m + at, m);
    store<W>(x.v + at, v);
  }

  static STRATA_DEVICE void run(const AdamwBf16Arguments<Gradient>& x) {
    for_my_pack<N>(x.range, [&]<int W>(std::int64_t at) { update<W>(x, at); });
  }
};

template <typename Gradient>
void start(kernels::Stream& stream, const kernels::KernelCall& call) {
  const auto &in = call.inputs, &out = call.outputs;
  AdamwBf16Arguments<Gradient> x{
      .parameter_in = in[0].row<const Bf16>(),
      .m_in = in[1].row<const Bf16>(),
      .v_in = in[2].row<const Bf16>(),
      .gradient = in[3].row<const Gradient>(),
      .parameter = out[0].row<Bf16>(),
      .m = out[1].row<Bf16>(),
      .v = out[2].row<Bf16>(),
      .control = reinterpret_cast<const StepControl*>(in[4].data),
      .rng = in[5].row<const std::int64_t>(),
      .predicate = call.predicate,
      .settings = AdamwSettings::from(call.attributes),
      .key = call.attributes.integer("key"),
      .first = static_cast<std::uint64_t>(call.attributes.integer("first", 0)),
      .range = {.count = in[0].elements()}};
  constexpr int kPack = static_cast<int>(16 / sizeof(Gradient));
  const bool fits =
      flat_packs_fit(x.range, kPack, {&in[0], &in[1], &in[2], &in[3], &out[0], &out[1], &out[2]});
  // Packs must be whole generator blocks, too.
  const bool blocks_fit = (x.first - static_cast<std::uint64_t>(x.range.lead)) % 4 == 0;
  if (fits && blocks_fit) {
    launch<AdamwBf16<Gradient, kPack>>(stream, flat_launch(x.range, kPack), x);
  } else {
    x.range.lead = 0;
    launch<AdamwBf16<Gradient, 1>>(stream, flat_launch(x.range, 1), x);
  }
}

}  // namespace

void adamw_bf16(kernels::Stream& stream, const kernels::KernelCall& call) {
  if (call.inputs[3].dtype() == DType::f32)
    start<float>(stream, call);
  else
    start<Bf16>(stream, call);
}

}  // namespace strata::cuda
