// Finds how much optimizer state may leave the device where the memories beside it are short.
#pragma once

#include <functional>

#include "plan/choices.h"

namespace strata::plan {

/// Returns `choices` with the largest share of optimizer state off the device, in sixteenths, with
/// which `hold` says that host memory and drives hold what they need; as they are if their own
/// share is held, if none is, or if the share is one that alternatives have anyway.
Choices with_held_part(const Choices& choices, const std::function<bool(const Choices&)>& hold);

}  // namespace strata::plan
