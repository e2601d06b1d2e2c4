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

constexpr Entry kWorkspaces[] = {
    {"", nullptr},
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
