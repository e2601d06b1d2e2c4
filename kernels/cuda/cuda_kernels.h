// CUDA kernels by operation. Each runs what the header of the same name in kernels/ describes.
// Built twice: by nvcc for devices, and for the simulation (host/simulation.h) that tests run
// without one.
#pragma once

#include "kernels/stream.h"

namespace strata::cuda {

void adamw(kernels::Stream& stream, const kernels::KernelCall& call);
void adamw_bf16(kernels::Stream& stream, const kernels::KernelCall& call);
void add(kernels::Stream& stream, const kernels::KernelCall& call);
void add_loss(kernels::Stream& stream, const kernels::KernelCall& call);
void gradient_scale(kernels::Stream& stream, const kernels::KernelCall& call);
void norm_squares(kernels::Stream& stream, const kernels::KernelCall& call);
void sgd(kernels::Stream& stream, const kernels::KernelCall& call);
void step_control(kernels::Stream& stream, const kernels::KernelCall& call);

/// All of them.
const kernels::KernelTable& cuda_kernels();

}  // namespace strata::cuda
