// The scratch of CUDA kernels.
#pragma once

#include "kernels/ops/workspaces.h"

namespace strata::kernels {

/// The table of the scratch of CUDA kernels; operations without a row need none.
std::span<const WorkspaceRow> cuda_workspaces();

}  // namespace strata::kernels
