// Scratch of CUDA's kernels.
#pragma once

#include "kernels/ops/workspaces.h"

namespace strata::kernels {

/// The rows of CUDA's kernels; operations without one need no scratch.
std::span<const WorkspaceRow> cuda_workspaces();

}  // namespace strata::kernels
