#include "kernels/cuda/workspaces.h"

#include <algorithm>

#include "kernels/cuda/column_sums.h"
#include "kernels/cuda/cudnn_scratch.h"
#include "kernels/cuda/head_chunks.h"
#include "kernels/cuda/norm_chunks.h"
#include "kernels/cuda/product_workspace.h"
#include "kernels/cuda/token_tiles.h"

namespace strata::cuda {
namespace {

using kernels::Attributes;
using kernels::DeviceCapabilities;
using kernels::TypeSpan;

std::int64_t head_bytes(TypeSpan inputs, TypeSpan, const Attributes&, const DeviceCapabilities&) {
  const HeadChunks chunks = head_chunks(inputs[0], inputs[1]);
  const std::int64_t logits = chunks.chunk_rows * inputs[1].shape.rows();
  const std::int64_t largest =
      std::max({logits, inputs[0].shape.elements(), inputs[1].shape.elements()});
  return chunks.total_bytes + product_workspace_bytes(largest);
}

std::int64_t linear_bytes(TypeSpan, TypeSpan outputs, const Attributes&,
                          const DeviceCapabilities&) {
  return product_workspace_bytes(outputs[0].shape.elements());
}

std::int64_t bias_bytes(TypeSpan inputs, TypeSpan, const Attributes&, const DeviceCapabilities&) {
  return column_sums_bytes(inputs[0]);
}

/// The bytes that cuDNN needs, 0 if it is not asked.
std::int64_t cudnn_bytes(bool backward, TypeSpan inputs, TypeSpan outputs,
                         const Attributes& attributes, const DeviceCapabilities& device) {
  if (!device.cudnn || !no_library_attention(backward, inputs, outputs, attributes).empty())
    return 0;
  return cudnn_workspace_bytes(attention_problem(backward, inputs, outputs, attributes),
                               device.architecture);
}

std::int64_t attention_bytes(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes,
                             const DeviceCapabilities& device) {
  return cudnn_bytes(false, inputs, outputs, attributes, device);
}

/// Our own kernels need scratch for delta, f32 [B, Hq, T], which is as large as lse.
std::int64_t attention_backward_bytes(TypeSpan inputs, TypeSpan outputs,
                                      const Attributes& attributes,
                                      const DeviceCapabilities& device) {
  const std::int64_t delta = inputs[5].shape.elements() * static_cast<std::int64_t>(sizeof(float));
  return std::max(delta, cudnn_bytes(true, inputs, outputs, attributes, device));
}

std::int64_t norm_backward_bytes(TypeSpan inputs, TypeSpan outputs, const Attributes&,
                                 const DeviceCapabilities&) {
  return norm_chunks(inputs[1].shape).bytes(static_cast<int>(outputs.size()) - 1);
}

std::int64_t embedding_backward_bytes(TypeSpan inputs, TypeSpan, const Attributes&,
                                      const DeviceCapabilities&) {
  return token_tiles(inputs[1].shape).bytes();
}

constexpr kernels::WorkspaceRow kWorkspaces[] = {
    {"attention", attention_bytes},
    {"attention_backward", attention_backward_bytes},
    {"embedding_backward", embedding_backward_bytes},
    {"head_loss", head_bytes},
    {"head_loss_eval", head_bytes},
    {"linear", linear_bytes},
    {"linear_backward_bias", bias_bytes},
    {"norm_backward", norm_backward_bytes},
    {"linear_backward_input", linear_bytes},
    {"linear_backward_weight", linear_bytes},
};

}  // namespace
}  // namespace strata::cuda

namespace strata::kernels {

std::span<const WorkspaceRow> cuda_workspaces() { return cuda::kWorkspaces; }

}  // namespace strata::kernels
