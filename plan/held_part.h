// Finds how much optimizer state may leave the device where the memories beside it are short.
#pragma once

#include <functional>
#include <optional>

#include "plan/choices.h"

namespace strata::plan {

/// Returns `choices` with the largest share of optimizer state off the device, in sixteenths, with
/// which `hold` says that host memory and drives hold what they need; nullopt if their own share is
/// held, or if none is.
std::optional<Choices> with_less_held(const Choices& choices,
                                      const std::function<bool(const Choices&)>& hold);

/// Returns the same, or `choices` as they are if there is none, or if the share is one that
/// alternatives have anyway.
Choices with_held_part(const Choices& choices, const std::function<bool(const Choices&)>& hold);

}  // namespace strata::plan
