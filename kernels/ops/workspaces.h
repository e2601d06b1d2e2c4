// The scratch of a backend's kernels, as rows of a table that planning reads without a device.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/ops/operation.h"

namespace strata::kernels {

struct WorkspaceRow {
  std::string_view operation;
  /// Returns the bytes of scratch of one call.
  std::int64_t (*bytes)(TypeSpan inputs, TypeSpan outputs, const Attributes& attributes,
                        const DeviceCapabilities& device);
};

}  // namespace strata::kernels
