// Guesses what a name of hardware that is not known may have meant.
#pragma once

#include <string>
#include <vector>

namespace strata::machine {

/// Returns what to write in place of `name`, of which `names` has none: ", did you mean 'rtx4090'?"
/// for a misspelling or a part of a name ("4090"), ", did you mean 'a100-40' or 'a100-80'?" for
/// what several names begin with, ", did you mean 'rtx4090,devices=8'?" for a number of devices
/// ("8xrtx4090", "rtx4090:8"); "": nothing. The letter of "v100" is no misspelling of another's.
std::string hardware_suggestion(const std::string& name, const std::vector<std::string>& names);

}  // namespace strata::machine
