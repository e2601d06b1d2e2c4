// The optional last output of an optimizer kernel: the new master, rounded to the parameter's type.
#pragma once

#include "kernels/cuda/element.cuh"
#include "kernels/device/stream.h"

namespace strata::cuda {

/// The element type that stands for a missing output.
struct NoParameter {};

/// Host: calls body(T{}, tensor) with output `index` and its element type; if there is none, with
/// output 0, which has the same shape, and NoParameter.
template <typename Body>
void with_parameter_type(const kernels::KernelCall& call, std::size_t index, const Body& body) {
  if (index < call.outputs.size()) {
    const kernels::Tensor& parameter = call.outputs[index];
    with_float_type(parameter.dtype(), [&](auto element) { body(element, parameter); });
  } else {
    body(NoParameter{}, call.outputs[0]);
  }
}

/// Rounds a master to T: to bf16 with halves away from zero (kernels/math/float16.h says why), to
/// fp16 with halves to even.
template <typename T>
STRATA_DEVICE T from_master(float master) {
  return from_float<T>(master);
}
template <>
STRATA_DEVICE Bf16 from_master<Bf16>(float master) {
  return {kernels::master_to_bf16(master)};
}

template <int N, typename T>
STRATA_DEVICE void store_parameter(T* to, std::int64_t at, const Pack<float, N>& master) {
  if constexpr (!std::is_same_v<T, NoParameter>) {
    Pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < N; ++i) pack.v[i] = from_master<T>(master.v[i]);
    store<N>(to + at, pack);
  }
}

}  // namespace strata::cuda
