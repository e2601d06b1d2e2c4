// A command as a line that a shell reads alike.
#pragma once

#include <string>
#include <vector>

namespace strata::launcher {

/// Returns "mlaunch" and the words after it, quoted where a shell would change them. Line ends
/// become blanks.
std::string command_text(const std::vector<std::string>& words);

}  // namespace strata::launcher
