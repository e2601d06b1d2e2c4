// The results that collectives must give, computed one element at a time, in plain code.
#pragma once

#include <cstdint>
#include <vector>

#include "core/dtype.h"

namespace strata::comm {

/// Returns the element at `index` that `rank` contributes in round `seed`, exact in `type` (fp32,
/// bf16 or fp16): wild exponents, both signs, zeros, halfway cases.
float pattern(DType type, int rank, std::int64_t index, std::uint64_t seed);

/// Writes and reads elements of fp32, bf16, fp16 (the value must fit the type).
void store(std::byte* memory, DType type, std::int64_t index, float value);
float load(const std::byte* memory, DType type, std::int64_t index);

/// Rounds once to nearest even.
float rounded(float value, DType type);

/// Returns the ordered sum of collective.h: rounds contributions to `wire`, adds, scales.
float tree_sum(const std::vector<float>& contributions, DType wire, float scale);

/// Mixes the bits of both arguments.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

}  // namespace strata::comm
