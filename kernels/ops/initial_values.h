// The numbers with which initialize (kernels/ops/initialize.h) computes, for host and device.
#pragma once

#include "kernels/device/attributes.h"
#include "kernels/math/normal_numbers.h"
#include "kernels/math/philox.h"

namespace strata::kernels {

struct InitialValues {
  RandomSource source{};
  double deviation = 0;  ///< 0: constants
  float constant = 0;

  static InitialValues from(const Attributes& attributes) {
    const auto number = [&](const char* high, const char* low) {
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(attributes.integer(high, 0))
                                           << 32 |
                                       static_cast<std::uint64_t>(attributes.integer(low, 0)));
    };
    return {.source = {number("seed_high", "seed_low"), 0, number("tensor_high", "tensor_low"), 0},
            .deviation = attributes.real("deviation", 0),
            .constant = static_cast<float>(attributes.real("constant", 0))};
  }

  /// Returns the element that `normal`, one of the four normal numbers of a block, becomes.
  [[nodiscard]] STRATA_HOST_DEVICE float scaled(double normal) const {
    return static_cast<float>(normal * deviation);
  }
};

}  // namespace strata::kernels
