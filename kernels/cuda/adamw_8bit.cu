// Implements kernels/ops/adamw_8bit.h on CUDA, with the bits of the CPU: every operation is rounded
// by itself, and the largest magnitude of a block does not depend on the order of its elements.
//
// One warp updates a block of 128 elements, four per thread. Per element it reads 6 bytes and the
// gradient, writes 6 bytes and the parameter, and executes some 170 instructions. Where memory is
// fast compared with the cores (sm_90a), the instructions take longer than moving the bytes.
#include "kernels/ops/adamw_8bit.h"

#include <bit>

#include "kernels/cuda/adamw.cuh"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/flat.cuh"
#include "kernels/cuda/parameter_output.cuh"
#include "kernels/cuda/predicate.cuh"
#include "kernels/math/dynamic_map.h"

namespace strata::cuda {
namespace {

using kernels::AdamwSettings;
using kernels::AdamwStep;
using kernels::kQuantizedBlock;
using kernels::StepControl;

constexpr int kPack = static_cast<int>(kQuantizedBlock) / kWarp;

template <typename Gradient, typename Parameter>
struct Adamw8bitArguments {
  const float* master_in;
  const std::uint8_t *m_in, *v_in;
  const float *m_scale_in, *v_scale_in;
  const Gradient* gradient;
  float* master;
  std::uint8_t *m, *v;
  float *m_scale, *v_scale;
  Parameter* parameter;
  const StepControl* control;
  const std::uint32_t* predicate;
  AdamwSettings settings;
  std::int64_t blocks;
};

/// Loads a pack, element by element where operands are not aligned (W = 1).
template <int W, typename T>
STRATA_DEVICE Pack<T, kPack> load_pack(const T* from) {
  if constexpr (W == kPack) {
    return load_once<kPack>(from);
  } else {
    Pack<T, kPack> pack;
#pragma unroll
    for (int i = 0; i < kPack; ++i) pack.v[i] = from[i];
    return pack;
  }
}
template <int W, typename T>
STRATA_DEVICE void store_pack(T* to, const Pack<T, kPack>& pack) {
  if constexpr (W == kPack) {
    store<kPack>(to, pack);
  } else {
#pragma unroll
    for (int i = 0; i < kPack; ++i) to[i] = pack.v[i];
  }
}

/// The largest magnitude in the warp, or a NaN if there is one. The bits of magnitudes, taken as
/// integers, are ordered like the numbers, with NaN above them.
STRATA_DEVICE float largest_magnitude(const float (&values)[kPack]) {
  std::int32_t largest = 0;
#pragma unroll
  for (const float value : values) {
    const std::int32_t bits = std::bit_cast<std::int32_t>(value) & 0x7FFFFFFF;
    largest = bits > largest ? bits : largest;
  }
#pragma unroll
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    const std::int32_t other = shuffle_xor(largest, mask);
    largest = other > largest ? other : largest;
  }
  return std::bit_cast<float>(largest);
}

template <typename Gradient, typename Parameter, int W>
struct Adamw8bit {
  static constexpr int kThreads = kFlatThreads;

  static STRATA_DEVICE void run(const Adamw8bitArguments<Gradient, Parameter>& x) {
    const std::int64_t block_index = std::int64_t{block().x} * (kThreads / kWarp) + warp();
    if (block_index >= x.blocks) return;  // all lanes of the warp
    const std::int64_t at = block_index * kQuantizedBlock + lane() * kPack;
    const auto gradient = load_pack<W>(x.gradient + at);
    auto master = load_pack<W>(x.master_in + at);
    auto m_code = load_pack<W>(x.m_in + at), v_code = load_pack<W>(x.v_in + at);
    const float m_scale = x.m_scale_in[block_index], v_scale = x.v_scale_in[block_index];
    const AdamwStep now = AdamwStep::at(x.settings, *x.control);
    if (!holds(x.predicate)) return;
    float m[kPack], v[kPack];
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      float moments[2] = {kernels::signed_value(m_code.v[i]) * m_scale,
                          kernels::unsigned_value(v_code.v[i]) * v_scale};
      AdamwUpdate::element(x.settings, now, to_float(gradient.v[i]), master.v[i], moments);
      m[i] = moments[0];
      v[i] = moments[1];
    }
    const float new_m_scale = largest_magnitude(m), new_v_scale = largest_magnitude(v);
    const float m_divisor = new_m_scale == 0 ? 1 : new_m_scale;
    const float v_divisor = new_v_scale == 0 ? 1 : new_v_scale;
#pragma unroll
    for (int i = 0; i < kPack; ++i) {
      m_code.v[i] = kernels::signed_code(m[i] / m_divisor);
      v_code.v[i] = kernels::unsigned_code(v[i] / v_divisor);
    }
    store_pack<W>(x.master + at, master);
    store_pack<W>(x.m + at, m_code);
    store_pack<W>(x.v + at, v_code);
    if (lane() == 0) {
      x.m_scale[block_index] = new_m_scale;
      x.v_scale[block_index] = new_v_scale;
    }
    if constexpr (!std::is_same_v<Parameter, NoParameter>) {
      Pack<Parameter, kPack> rounded;
#pragma unroll
      for (int i = 0; i < kPack; ++i) rounded.v[i] = from_master<Parameter>(master.v[i]);
      store_pack<W>(x.parameter + at, rounded);
    }
  }
};

}  // namespace

void adamw_8bit(kernels::Stream& stream, const kernels::KernelCall& call) {
  const auto &in = call.inputs, &out = call.outputs;
  with_parameter_type(call, 5, [&](auto element, const kernels::Tensor& parameter) {
    with_float_type(in[5].dtype(), [&](auto produced) {
      using P = decltype(element);
      using G = decltype(produced);
      const Adamw8bitArguments<G, P> x{.master_in = in[0].row<const float>(),
                                       .m_in = in[1].row<const std::uint8_t>(),
                                       .v_in = in[2].row<const std::uint8_t>(),
                                       .m_scale_in = in[3].row<const float>(),
                                       .v_scale_in = in[4].row<const float>(),
                                       .gradient = in[5].row<const G>(),
                                       .master = out[0].row<float>(),
                                       .m = out[1].row<std::uint8_t>(),
                                       .v = out[2].row<std::uint8_t>(),
                                       .m_scale = out[3].row<float>(),
                                       .v_scale = out[4].row<float>(),
                                       .parameter = reinterpret_cast<P*>(parameter.data),
                                       .control = reinterpret_cast<const StepControl*>(in[6].data),
                                       .predicate = call.predicate,
                                       .settings = AdamwSettings::from(call.attributes),
                                       .blocks = in[0].elements() / kQuantizedBlock};
      FlatRange range{.count = in[0].elements()};
      const bool fits =
          flat_packs_fit(range, kPack,
                         {&in[0], &in[1], &in[2], &in[5], &out[0], &out[1], &out[2], &parameter}) &&
          range.lead == 0;
      range.lead = 0;
      if (fits)
        launch<Adamw8bit<G, P, kPack>>(stream, flat_launch(range, kPack), x);
      else
        launch<Adamw8bit<G, P, 1>>(stream, flat_launch(range, kPack), x);
    });
  });
}

}  // namespace strata::cuda
