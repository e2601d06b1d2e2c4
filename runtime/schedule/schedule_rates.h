// Computes how fast tasks run side by side on shared cores, memory, links and disks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace strata::runtime {

/// Rates are whole multiples of 1 / kFullRate, so that every machine computes the same ones.
constexpr int kRateBits = 20;
constexpr std::int64_t kFullRate = std::int64_t{1} << kRateBits;

/// Max-min fair: all rates rise together; those that share a resource stay where it is full, the
/// others rise on, up to the rate of a task alone. Allocates nothing once it has seen as many
/// tasks.
class FairRates {
 public:
  explicit FairRates(int resources)
      : left_(static_cast<std::size_t>(resources)), wanted_(static_cast<std::size_t>(resources)) {}

  /// One rate in (0, kFullRate] per running task, whose shares are given; valid until the next
  /// call.
  const std::vector<std::int64_t>& of(
      const std::vector<const std::vector<ResourceShare>*>& running);

 private:
  /// The rate at which those that still rise fill the resource.
  [[nodiscard]] std::int64_t full_at(std::size_t resource) const;

  std::vector<std::int64_t> rates_;          // 0: still rising
  std::vector<std::int64_t> left_, wanted_;  // per resource
  std::vector<std::size_t> staying_;
};

}  // namespace strata::runtime
