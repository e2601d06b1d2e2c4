// The place of a kind of state between its uses.
#pragma once

#include <cstdint>

namespace strata::plan {

/// The home of a kind of state, from the device outward. Options call them none, cpu and nvme.
enum class Home : std::uint8_t { device, host, disk };

}  // namespace strata::plan
