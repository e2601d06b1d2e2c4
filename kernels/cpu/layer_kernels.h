// CPU kernels of the operations between matrix products; each is documented in kernels/ops/NAME.h.
#pragma once

#include "kernels/device/stream.h"

namespace strata::kernels {

void add_kernel(Stream& stream, const KernelCall& call);
void attention_kernel(Stream& stream, const KernelCall& call);
void attention_backward_kernel(Stream& stream, const KernelCall& call);
void dropout_kernel(Stream& stream, const KernelCall& call);
void embedding_kernel(Stream& stream, const KernelCall& call);
void embedding_backward_kernel(Stream& stream, const KernelCall& call);
void gelu_kernel(Stream& stream, const KernelCall& call);
void gelu_backward_kernel(Stream& stream, const KernelCall& call);
void norm_kernel(Stream& stream, const KernelCall& call);
void norm_backward_kernel(Stream& stream, const KernelCall& call);
void position_backward_kernel(Stream& stream, const KernelCall& call);
void residual_add_kernel(Stream& stream, const KernelCall& call);
void residual_norm_kernel(Stream& stream, const KernelCall& call);
void rope_kernel(Stream& stream, const KernelCall& call);
void rope_table_kernel(Stream& stream, const KernelCall& call);
void select_rows_kernel(Stream& stream, const KernelCall& call);
void swiglu_kernel(Stream& stream, const KernelCall& call);
void swiglu_backward_kernel(Stream& stream, const KernelCall& call);

}  // namespace strata::kernels
