// Implements kernels/ops/sgd.h on CUDA, with the bits of the CPU: every operation is rounded by
// itself. Memory is the bound: up to 8 bytes read and 4 written per element, with momentum 12 and
// 8, and 2 or 4 written for the parameter.
#include "kernels/ops/sgd.h"

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/flat.cuh"
#include "kernels/cuda/parameter_output.cuh"
#include "kernels/cuda/predicate.cuh"
#include "kernels/ops/optimizer_settings.h"

namespace strata::cuda {
namespace {

using kernels::SgdSettings;
using kernels::StepControl;

constexpr int kPack = 4;

template <typename Parameter, typename Gradient>
struct SgdArguments {
  const float *master_in, *momentum_in;
  const Gradient* gradient;
  float *master, *momentum;
  Parameter* parameter;
  const StepControl* control;
  const std::uint32_t* predicate;
  SgdSettings settings;
  FlatRange range;
};

template <typename Parameter, typename Gradient, bool kMomentum, int N>
struct Sgd {
  static constexpr int kThreads = kFlatThreads;

  template <int W>
  static STRATA_DEVICE void update(const SgdArguments<Parameter, Gradient>& x, std::int64_t at) {
    const SgdSettings& s = x.settings;
    const auto gradient = load_once<W>(x.gradient + at);
    auto p = load_once<W>(x.master_in + at);
    Pack<float, W> momentum;
    if constexpr (kMomentum) momentum = load_once<W>(x.momentum_in + at);
    const float gradient_factor = x.control->gradient_factor;
    const float learning_rate = x.control->learning_rate;
    const bool first = x.control->first_update != 0;
    if (!holds(x.predicate)) return;
#pragma unroll
    for (int i = 0; i < W; ++i) {
      float g = to_float(gradient.v[i]) * gradient_factor;
      if (s.weight_decay != 0) g = g + s.weight_decay * p.v[i];
      if constexpr (kMomentum) {
        // The buffer's content is undefined before the first update.
        const float b = first ? g : s.momentum * momentum.v[i] + s.one_minus_dampening * g;
        momentum.v[i] = b;
        g = s.nesterov ? g + s.momentum * b : b;
      }
      p.v[i] = p.v[i] - learning_rate * g;
    }
    store<W>(x.master + at, p);
    if constexpr (kMomentum) store<W>(x.momentum + at, momentum);
    store_parameter<W>(x.parameter, at, p);
  }

  static STRATA_DEVICE void run(const SgdArguments<Parameter, Gradient>& x) {
    for_my_pack<N>(x.range, [&]<int W>(std::int64_t at) { update<W>(x, at); });
  }
};

template <typename Parameter, typename Gradient, bool kMomentum>
void start(kernels::Stream& stream, SgdArguments<Parameter, Gradient>& x,
           std::initializer_list<const kernels::Tensor*> operands) {
  if (flat_packs_fit(x.range, kPack, operands))
    launch<Sgd<Parameter, Gradient, kMomentum, kPack>>(stream, flat_launch(x.range, kPack), x);
  else
    launch<Sgd<Parameter, Gradient, kMomentum, 1>>(stream, flat_launch(x.range, 1), x);
}

}  // namespace

void sgd(kernels::Stream& stream, const kernels::KernelCall& call) {
  const auto &in = call.inputs, &out = call.outputs;
  const bool momentum = call.attributes.real("momentum", 0) > 0;
  const std::size_t states = momentum ? 2 : 1;  // the gradient and the control follow
  with_parameter_type(call, states, [&](auto element, const kernels::Tensor& parameter) {
    with_float_type(in[states].dtype(), [&](auto produced) {
      using P = decltype(element);
      using G = decltype(produced);
      SgdArguments<P, G> x{.master_in = in[0].row<const float>(),
                           .momentum_in = momentum ? in[1].row<const float>() : nullptr,
                           .gradient = in[states].row<const G>(),
                           .master = out[0].row<float>(),
                           .momentum = momentum ? out[1].row<float>() : nullptr,
                           .parameter = reinterpret_cast<P*>(parameter.data),
                           .control = reinterpret_cast<const StepControl*>(in[states + 1].data),
                           .predicate = call.predicate,
                           .settings = SgdSettings::from(call.attributes),
                           .range = {.count = in[0].elements()}};
      if (momentum)
        start<P, G, true>(stream, x, {&in[0], &in[1], &in[2], &out[0], &out[1], &parameter});
      else
        start<P, G, false>(stream, x, {&in[0], &in[1], &out[0], &parameter});
    });
  });
}

}  // namespace strata::cuda
