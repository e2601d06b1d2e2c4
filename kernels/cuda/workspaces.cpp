#include "kernels/cuda/workspaces.h"

#include <algorithm>
#include <iterator>

namespace strata::cuda {
namespace {

struct Entry {
  std::string_view operation;
  std::int64_t (*bytes)(kernels::TypeSpan inputs, kernels::TypeSpan outputs,
                        const kernels::Attributes& attributes,
                        const kernels::DeviceCapabilities& device);
};

/// delta, f32 [B, Hq, T]: as many numbers as lse.
std::int64_t attention_backward_bytes(kernels::TypeSpan inputs, kernels::TypeSpan,
                                      const kernels::Attributes&,
                                      const kernels::DeviceCapabilities&) {
  return inputs[5].shape.elements() * static_cast<std::int64_t>(sizeof(float));
}

constexpr Entry kWorkspaces[] = {
    {"attention_backward", attention_backward_bytes},
};

}  // namespace

std::int64_t workspace_bytes(std::string_view operation, kernels::TypeSpan inputs,
                             kernels::TypeSpan outputs, const kernels::Attributes& attributes,
                             const kernels::DeviceCapabilities& device) {
  const auto* found =
      std::find_if(std::begin(kWorkspaces), std::end(kWorkspaces),
                   [&](const Entry& entry) { return entry.operation == operation; });
  return found == std::end(kWorkspaces) ? 0 : found->bytes(inputs, outputs, attributes, device);
}

}  // namespace strata::cuda
