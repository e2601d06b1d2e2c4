// What the fuzzers call, and the replay of their corpora. Each aborts when a rule is broken.
#pragma once

#include <cstddef>
#include <span>

namespace strata::train {

/// Parses strictly and leniently; what is accepted must be written and read back the same.
void fuzz_json(std::span<const std::byte> input);
/// A safetensors file; accepted tensors must cover the data exactly.
void fuzz_safetensors(std::span<const std::byte> input);
/// A .bin token file; an accepted layout must cover the file exactly.
void fuzz_tokens(std::span<const std::byte> input);

}  // namespace strata::train
