// Says what a run that ends now loses.
#pragma once

#include <cstdint>
#include <string>

namespace strata::train {

/// Returns "steps 5 to 17 are lost: the newest checkpoint is out/step-00000004", by names in the
/// folder; one that cannot be read counts as empty. `step`: the last one under way or done.
std::string what_is_lost(const std::string& output, std::int64_t step) noexcept;

}  // namespace strata::train
