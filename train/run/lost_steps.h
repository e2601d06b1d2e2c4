// What a run that ends now loses.
#pragma once

#include <cstdint>
#include <string>

namespace strata::train {

/// "steps 5 to 17 are lost: the newest checkpoint is out/step-00000004", by the names in the
/// folder. `step`: the one that is under way or done. Throws nothing: a folder that cannot be read
/// has no checkpoint that is known.
std::string what_is_lost(const std::string& output, std::int64_t step) noexcept;

}  // namespace strata::train
