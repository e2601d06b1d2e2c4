// Scratch of a backend's kernels, as rows of a table that is known without a device: planning asks.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/ops/operation.h"

namespace strata::kernels {

struct WorkspaceRow {
  std::string_view operation;
  /// Bytes of scratch of one call.
  std::int64_t (*bytes)(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes,
                        const DeviceCapabilities& device);
};

/// The rows of the CPU's kernels; operations without one need no scratch.
std::span<const WorkspaceRow> cpu_workspaces();
/// The rows of CUDA's.
std::span<const WorkspaceRow> cuda_workspaces();

}  // namespace strata::kernels
