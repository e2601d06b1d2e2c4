// Logits of a model directory, computed by the product's own generation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace strata::tests {

/// Computes logits at all positions in `dtype`: `ids` [B, sequence] -> [B, sequence, vocabulary].
std::vector<double> model_logits(const std::string& directory, DType dtype,
                                 std::span<const std::int32_t> ids, std::int64_t sequence);

}  // namespace strata::tests
