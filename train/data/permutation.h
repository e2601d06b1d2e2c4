// A random-access permutation: gives element i of a shuffled order without storing the order.
#pragma once

#include <cstdint>

namespace strata::train {

/// A bijection of [0, size) chosen by a key, without memory: a Feistel network over the next power
/// of four, applied again until the result is below size (at most four times on average).
class Permutation {
 public:
  /// Requires 0 < size <= 2^62.
  Permutation(std::int64_t size, std::uint64_t seed, std::uint64_t stream);
  /// Returns the image of `index`.
  [[nodiscard]] std::int64_t operator()(std::int64_t index) const;

 private:
  [[nodiscard]] std::uint64_t encrypt(std::uint64_t value) const;

  std::uint64_t size_;
  std::uint64_t key_;
  int half_bits_;
};

}  // namespace strata::train
