// The places where bytes live. Each tier of a rank is one arena.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace strata::runtime {

enum class Tier : std::uint8_t { device, pinned, pageable, disk };
inline constexpr std::array kAllTiers{Tier::device, Tier::pinned, Tier::pageable, Tier::disk};
inline constexpr int kTiers = static_cast<int>(kAllTiers.size());
std::string_view name_of(Tier tier);

}  // namespace strata::runtime
