// Logits of a model directory, by the product's own generation.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace strata::tests {

/// Logits of all positions: `ids` [B, sequence] -> [B, sequence, vocabulary], computed in `dtype`.
std::vector<double> model_logits(const std::string& directory, DType dtype,
                                 std::span<const std::int32_t> ids, std::int64_t sequence);

}  // namespace strata::tests
