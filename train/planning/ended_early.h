// Says what a search for a plan may have missed that ended at one of its limits.
#pragma once

#include <string>
#include <string_view>

namespace strata::train {

/// A line that begins with a newline: what was `missed`, and how to go on from the search. `first`:
/// what else to try before.
std::string ended_early_text(std::string_view missed, std::string_view first = "");

}  // namespace strata::train
