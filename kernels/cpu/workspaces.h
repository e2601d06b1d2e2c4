// Scratch of the CPU's kernels.
#pragma once

#include "kernels/ops/workspaces.h"

namespace strata::kernels {

/// The rows of the CPU's kernels; operations without one need no scratch.
std::span<const WorkspaceRow> cpu_workspaces();

}  // namespace strata::kernels
