// CPU kernels of the operations that are matrix products; each is documented in kernels/ops/NAME.h.
#pragma once

#include "kernels/device/stream.h"

namespace strata::kernels {

void head_loss_kernel(Stream& stream, const KernelCall& call);
void head_loss_eval_kernel(Stream& stream, const KernelCall& call);
void linear_kernel(Stream& stream, const KernelCall& call);
void linear_backward_bias_kernel(Stream& stream, const KernelCall& call);
void linear_backward_input_kernel(Stream& stream, const KernelCall& call);
void linear_backward_weight_kernel(Stream& stream, const KernelCall& call);

}  // namespace strata::kernels
