// Finds names for files of earlier runs that make room.
#pragma once

#include <string>

namespace strata {

/// Returns the name to move the file of `path` to, links followed: "PATH.old", or the first of
/// "PATH.old.2", "PATH.old.3" ... that nothing has.
std::string name_aside(const std::string& path);

}  // namespace strata
