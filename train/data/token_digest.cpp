#include "train/data/token_digest.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/hash.h"
#include "core/round_up.h"

namespace strata::train {
namespace {

constexpr std::int64_t kStretch = 4096;
constexpr std::int64_t kStretches = 4096;

}  // namespace

std::string digest_tokens(const TokenSource& source, const Beat& beat) {
  const std::int64_t size = source.size();
  const std::int64_t stretches = std::min(divide_up(size, kStretch), kStretches);
  const bool all = size <= kStretch * kStretches;
  std::vector<Hash128> hashes;
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < stretches; ++i) {
    const std::int64_t first = all ? i * kStretch : (size - kStretch) * i / (stretches - 1);
    tokens.resize(static_cast<std::size_t>(std::min(kStretch, size - first)));
    source.read(first, tokens);
    hashes.push_back(hash_128(std::as_bytes(std::span(tokens))));
    beat();
  }
  const std::array<std::int64_t, 2> facts{size, source.vocabulary_bound()};
  hashes.push_back(hash_128(std::as_bytes(std::span(facts))));
  return hash_128(std::as_bytes(std::span(hashes))).hex();
}

}  // namespace strata::train
