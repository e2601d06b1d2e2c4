// Which build of Strata an mlaunch is: hosts of a run must have one.
#pragma once

#include <string>
#include <string_view>

namespace strata::launcher {

/// Returns the version, and hashes of mlaunch and of the module through which hosts talk, as lines
/// of a name and a value. Call it once that module is open. Copies of one build are equal. Throws
/// IoError if a file cannot be read.
std::string own_build(std::string_view version);

}  // namespace strata::launcher
