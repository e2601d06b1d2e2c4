// CPU kernels of the operations around a step; each is documented in kernels/ops/NAME.h.
#pragma once

#include "kernels/device/stream.h"

namespace strata::kernels {

void accumulate_kernel(Stream& stream, const KernelCall& call);
void adamw_kernel(Stream& stream, const KernelCall& call);
void adamw_8bit_kernel(Stream& stream, const KernelCall& call);
void adamw_bf16_kernel(Stream& stream, const KernelCall& call);
void adamw_packed_kernel(Stream& stream, const KernelCall& call);
void add_loss_kernel(Stream& stream, const KernelCall& call);
void convert_kernel(Stream& stream, const KernelCall& call);
void copy_kernel(Stream& stream, const KernelCall& call);
void early_control_kernel(Stream& stream, const KernelCall& call);
void fill_zero_kernel(Stream& stream, const KernelCall& call);
void gradient_scale_kernel(Stream& stream, const KernelCall& call);
void initialize_kernel(Stream& stream, const KernelCall& call);
void lion_kernel(Stream& stream, const KernelCall& call);
void lion_packed_kernel(Stream& stream, const KernelCall& call);
void norm_squares_kernel(Stream& stream, const KernelCall& call);
void sgd_kernel(Stream& stream, const KernelCall& call);
void step_control_kernel(Stream& stream, const KernelCall& call);

}  // namespace strata::kernels
