// CUDA kernels by operation. Each runs what the header of the same name in kernels/ describes.
// Built twice: by nvcc for devices, and for the simulation (host/simulation.h) that tests run
// without one.
#pragma once

#include "kernels/stream.h"

namespace strata::cuda {

void add(kernels::Stream& stream, const kernels::KernelCall& call);
void dropout(kernels::Stream& stream, const kernels::KernelCall& call);
void residual_add(kernels::Stream& stream, const kernels::KernelCall& call);

/// All of them.
const kernels::KernelTable& cuda_kernels();

}  // namespace strata::cuda
