// Follows links to the file that a name stands for.
#pragma once

#include <string>

namespace strata {

/// Returns the path of the file that `path` names, links followed; `path` itself where it is no
/// link, or the link cannot be followed. The file need not exist.
std::string link_target(const std::string& path);

}  // namespace strata
