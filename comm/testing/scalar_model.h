// What collectives must compute, one element at a time and as plainly as possible.
#pragma once

#include <cstdint>
#include <vector>

#include "core/dtype.h"

namespace strata::comm {

/// The element at `index` that `rank` contributes in round `seed`, one of fp32, bf16, fp16: wild
/// exponents, both signs, zeros, halfway cases. Exact in its type.
float pattern(DType type, int rank, std::int64_t index, std::uint64_t seed);

/// Writes and reads elements of fp32, bf16, fp16 (the value must fit the type).
void store(std::byte* memory, DType type, std::int64_t index, float value);
float load(const std::byte* memory, DType type, std::int64_t index);

/// Rounded once to nearest even.
float rounded(float value, DType type);

/// The ordered sum of collective.h: each contribution rounded to `wire`, tree, scale.
float tree_sum(const std::vector<float>& contributions, DType wire, float scale);

/// Well mixed bits of both arguments.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

}  // namespace strata::comm
