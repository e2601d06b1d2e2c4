// kernels/adamw.h on CUDA, with the bits of the CPU: every operation is rounded by itself.
//
// Memory-bound: 16 bytes read and 12 written per element, and the parameter's 2 or 4. Each thread
// has 64 bytes under way.
#include "kernels/adamw.h"

#include "kernels/cuda/adamw.cuh"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/flat.cuh"
#include "kernels/cuda/parameter_output.cuh"
#include "kernels/cuda/predicate.cuh"

namespace strata::cuda {
namespace {

using kernels::AdamwSettings;
using kernels::AdamwStep;
using kernels::StepControl;

constexpr int kPack = 4;

template <typename Parameter, typename Gradient>
struct AdamwArguments {
  const float *master_in, *m_in, *v_in;
  const Gradient* gradient;
  float *master, *m, *v;
  Parameter* parameter;
  const StepControl* control;
  const std::uint32_t* predicate;
  AdamwSettings settings;
  FlatRange range;
};

template <typename Parameter, typename Gradient, int N>
struct Adamw {
  static constexpr int kThreads = kFlatThreads;

  template <int W>
  static STRATA_DEVICE void update(const AdamwArguments<Parameter, Gradient>& x, std::int64_t at) {
    const auto gradient = load_once<W>(x.gradient + at);
    auto p = load_once<W>(x.master_in + at);
    auto m = load_once<W>(x.m_in + at);
    auto v = load_once<W>(x.v_in + at);
    const AdamwStep now = AdamwStep::at(x.settings, *x.control);
    if (!holds(x.predicate)) return;
#pragma unroll
    for (int i = 0; i < W; ++i)
      adamw_element(x.settings, now, to_float(gradient.v[i]), p.v[i], m.v[i], v.v[i]);
    store<W>(x.master + at, p);
    store<W>(x.m + at, m);
    store<W>(x.v + at, v);
    store_parameter<W>(x.parameter, at, p);
  }

  static STRATA_DEVICE void run(const AdamwArguments<Parameter, Gradient>& x) {
    for_my_pack<N>(x.range, [&]<int W>(std::int64_t at) { update<W>(x, at); });
  }
};

}  // namespace

void adamw(kernels::Stream& stream, const kernels::KernelCall& call) {
  const auto &in = call.inputs, &out = call.outputs;
  with_parameter_type(call, 3, [&](auto element, const kernels::Tensor& parameter) {
    with_float_type(in[3].dtype(), [&](auto produced) {
      using P = decltype(element);
      using G = decltype(produced);
      AdamwArguments<P, G> x{.master_in = in[0].row<const float>(),
                             .m_in = in[1].row<const float>(),
                             .v_in = in[2].row<const float>(),
                             .gradient = in[3].row<const G>(),
                             .master = out[0].row<float>(),
                             .m = out[1].row<float>(),
                             .v = out[2].row<float>(),
                             .parameter = reinterpret_cast<P*>(parameter.data),
                             .control = reinterpret_cast<const StepControl*>(in[4].data),
                             .predicate = call.predicate,
                             .settings = AdamwSettings::from(call.attributes),
                             .range = {.count = in[0].elements()}};
      if (flat_packs_fit(x.range, kPack,
                         {&in[0], &in[1], &in[2], &in[3], &out[0], &out[1], &out[2], &parameter}))
        launch<Adamw<P, G, kPack>>(stream, flat_launch(x.range, kPack), x);
      else
        launch<Adamw<P, G, 1>>(stream, flat_launch(x.range, 1), x);
    });
  });
}

}  // namespace strata::cuda
