// Bytes per time as whole numbers, so that every machine finds the same times.
#pragma once

#include <algorithm>
#include <cstdint>

namespace strata::runtime {

/// A rate in whole bytes per kRateNs, rounded down; at least 1.
class ChainRate {
 public:
  static constexpr std::int64_t kRateNs = 1024;
  static constexpr std::int64_t kSlowestBytesPerS = 1'000'000;  ///< that is not 0
  static constexpr std::int64_t kFastestBytesPerS = 1'000'000'000'000;

  explicit ChainRate(std::int64_t bytes_per_s)
      : bytes_(std::max<std::int64_t>(1, bytes_per_s * kRateNs / 1'000'000'000)) {}

  [[nodiscard]] std::int64_t bytes_per_unit() const { return bytes_; }
  /// Time in which `bytes` are copied, rounded up.
  [[nodiscard]] std::int64_t ns(std::int64_t bytes) const {
    return (bytes * kRateNs + bytes_ - 1) / bytes_;
  }
  /// Bytes that are copied in `ns`, rounded down.
  [[nodiscard]] std::int64_t bytes(std::int64_t ns) const { return ns * bytes_ / kRateNs; }

 private:
  std::int64_t bytes_;
};

}  // namespace strata::runtime
