// CUDA kernels by operation; kernels/ops describes what each computes. They are built twice: by
// nvcc for devices, and by the C++ compiler for the simulation (testing/simulated/simulation.h).
#pragma once

#include "kernels/device/stream.h"

namespace strata::cuda {

void accumulate(kernels::Stream& stream, const kernels::KernelCall& call);
void add(kernels::Stream& stream, const kernels::KernelCall& call);
void head_loss(kernels::Stream& stream, const kernels::KernelCall& call);
void head_loss_eval(kernels::Stream& stream, const kernels::KernelCall& call);
void initialize(kernels::Stream& stream, const kernels::KernelCall& call);
void linear(kernels::Stream& stream, const kernels::KernelCall& call);
void linear_backward_bias(kernels::Stream& stream, const kernels::KernelCall& call);
void linear_backward_input(kernels::Stream& stream, const kernels::KernelCall& call);
void linear_backward_weight(kernels::Stream& stream, const kernels::KernelCall& call);
void attention(kernels::Stream& stream, const kernels::KernelCall& call);
void attention_backward(kernels::Stream& stream, const kernels::KernelCall& call);
void convert(kernels::Stream& stream, const kernels::KernelCall& call);
void copy(kernels::Stream& stream, const kernels::KernelCall& call);
void dropout(kernels::Stream& stream, const kernels::KernelCall& call);
void embedding(kernels::Stream& stream, const kernels::KernelCall& call);
void embedding_backward(kernels::Stream& stream, const kernels::KernelCall& call);
void fill_zero(kernels::Stream& stream, const kernels::KernelCall& call);
/// Fills one tensor with zeros, but not the bytes between its rows. It is not an operation.
void fill_rows(kernels::Stream& stream, const kernels::Tensor& to);
void gelu(kernels::Stream& stream, const kernels::KernelCall& call);
void gelu_backward(kernels::Stream& stream, const kernels::KernelCall& call);
void norm(kernels::Stream& stream, const kernels::KernelCall& call);
void norm_backward(kernels::Stream& stream, const kernels::KernelCall& call);
void position_backward(kernels::Stream& stream, const kernels::KernelCall& call);
void residual_add(kernels::Stream& stream, const kernels::KernelCall& call);
void residual_norm(kernels::Stream& stream, const kernels::KernelCall& call);
void rope(kernels::Stream& stream, const kernels::KernelCall& call);
void rope_table(kernels::Stream& stream, const kernels::KernelCall& call);
void select_rows(kernels::Stream& stream, const kernels::KernelCall& call);
void swiglu(kernels::Stream& stream, const kernels::KernelCall& call);
void swiglu_backward(kernels::Stream& stream, const kernels::KernelCall& call);
void adamw(kernels::Stream& stream, const kernels::KernelCall& call);
void adamw_8bit(kernels::Stream& stream, const kernels::KernelCall& call);
void adamw_bf16(kernels::Stream& stream, const kernels::KernelCall& call);
void adamw_packed(kernels::Stream& stream, const kernels::KernelCall& call);
void lion(kernels::Stream& stream, const kernels::KernelCall& call);
void lion_packed(kernels::Stream& stream, const kernels::KernelCall& call);
void add_loss(kernels::Stream& stream, const kernels::KernelCall& call);
void gradient_scale(kernels::Stream& stream, const kernels::KernelCall& call);
void norm_squares(kernels::Stream& stream, const kernels::KernelCall& call);
void sgd(kernels::Stream& stream, const kernels::KernelCall& call);
void step_control(kernels::Stream& stream, const kernels::KernelCall& call);
void early_control(kernels::Stream& stream, const kernels::KernelCall& call);

/// The table of all kernels that are operations.
const kernels::KernelTable& cuda_kernels();

}  // namespace strata::cuda
