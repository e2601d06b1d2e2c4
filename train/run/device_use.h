// The memory of a device that is in use, looked up seldom: the driver takes a while.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "core/clock.h"
#include "kernels/device/device.h"

namespace strata::train {

class DeviceUse {
 public:
  using Look = std::function<std::optional<kernels::DeviceMemoryFacts>()>;
  explicit DeviceUse(Look look) : look_(std::move(look)) {}

  /// Bytes in use by all processes, at most a second old; nullopt: there is no device.
  std::optional<std::int64_t> bytes() {
    constexpr std::int64_t kSecondNs = 1'000'000'000;
    const std::int64_t now = monotonic_ns();
    if (looked_ns_ != 0 && now - looked_ns_ < kSecondNs) return bytes_;
    looked_ns_ = now;
    if (const auto facts = look_()) bytes_ = facts->total_bytes - facts->free_bytes;
    return bytes_;
  }

 private:
  Look look_;
  std::optional<std::int64_t> bytes_;
  std::int64_t looked_ns_ = 0;
};

}  // namespace strata::train
