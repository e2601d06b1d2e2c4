// Striping of a store's bytes: stripes go round the devices, so that a transfer uses them all.
#pragma once

#include <algorithm>
#include <cstdint>

namespace strata::offload {

struct Stripes {
  std::int64_t stripe_bytes = std::int64_t{4} << 20;
  int devices = 1;

  [[nodiscard]] constexpr int device(std::int64_t offset) const {
    return static_cast<int>(offset / stripe_bytes % devices);
  }
  [[nodiscard]] constexpr std::int64_t device_offset(std::int64_t offset) const {
    return offset / stripe_bytes / devices * stripe_bytes + offset % stripe_bytes;
  }
  /// Returns the bytes that device `which` holds of a space of `total` bytes.
  [[nodiscard]] constexpr std::int64_t device_bytes(int which, std::int64_t total) const {
    const std::int64_t round = stripe_bytes * devices;
    const std::int64_t rest = total % round - which * stripe_bytes;
    return total / round * stripe_bytes + std::clamp(rest, std::int64_t{0}, stripe_bytes);
  }
};

}  // namespace strata::offload
