// kernels/ops/adamw.h and kernels/ops/adamw_bf16.h on CUDA.
#include "kernels/ops/adamw.h"

#include "kernels/cuda/adamw.cuh"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/optimizer.cuh"
#include "kernels/ops/adamw_bf16.h"

namespace strata::cuda {

using kernels::AdamwSettings;

void adamw(kernels::Stream& stream, const kernels::KernelCall& call) {
  run_optimizer<AdamwUpdate>(stream, call, AdamwSettings::from(call.attributes));
}

void adamw_packed(kernels::Stream& stream, const kernels::KernelCall& call) {
  run_packed_optimizer<AdamwUpdate>(stream, call, AdamwSettings::from(call.attributes));
}

void adamw_bf16(kernels::Stream& stream, const kernels::KernelCall& call) {
  const AdamwSettings settings = AdamwSettings::from(call.attributes);
  const auto start = [&](auto gradient) {
    using Formats = OptimizerFormats<StochasticParameter, Bf16, decltype(gradient), NoParameter>;
    start_optimizer<Formats, AdamwUpdate>(stream, call, settings);
  };
  if (call.inputs[3].dtype() == DType::f32)
    start(float{});
  else
    start(Bf16{});
}

}  // namespace strata::cuda
