// Says which tokens sample i of a run has, from seed and i alone (design 2.19).
#pragma once

#include <cstdint>
#include <string>

namespace strata::train {

struct SampleOrderOptions {
  std::int64_t sequence = 0;  ///< tokens of a sample, without the one more for the last target
  bool shuffle = true;
  std::uint64_t seed = 0;
};

/// Samples are windows of `sequence` inputs that begin at multiples of `sequence`.
///
/// Shuffled: epoch e = i / windows() visits each of the (tokens - 1) / sequence windows once, in an
/// order of its own. Not shuffled: sample i begins at (i * sequence) mod (tokens - sequence - 1).
class SampleOrder {
 public:
  /// Throws DataError naming `source`, tokens found and expected, if there is less than one window.
  SampleOrder(std::int64_t tokens, const std::string& source, const SampleOrderOptions& options);

  /// Windows of one epoch: the number of samples before a token is an input for the second time.
  [[nodiscard]] std::int64_t windows() const { return windows_; }
  [[nodiscard]] std::int64_t epoch_of(std::int64_t sample) const { return sample / windows_; }
  [[nodiscard]] std::int64_t sequence() const { return options_.sequence; }
  /// The first token of sample `sample` >= 0; token start + sequence also exists.
  [[nodiscard]] std::int64_t start_of(std::int64_t sample) const;

 private:
  std::int64_t tokens_;
  SampleOrderOptions options_;
  std::int64_t windows_ = 0;
};

}  // namespace strata::train
