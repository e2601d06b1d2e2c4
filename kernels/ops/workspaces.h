// Scratch of a backend's kernels, as rows of a table that is known without a device: planning asks.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/ops/operation.h"

namespace strata::kernels {

struct WorkspaceRow {
  std::string_view operation;
  /// Bytes of scratch of one call.
  std::int64_t (*bytes)(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes,
                        const DeviceCapabilities& device);
};

}  // namespace strata::kernels
