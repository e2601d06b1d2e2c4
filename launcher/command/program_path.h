// The search for the program to start.
#pragma once

#include <string>

namespace strata::launcher {

/// Returns `name` itself when it contains a slash; else the executable of that name in
/// `first_directory`, else in the colon-separated `search_path`. Throws InvalidArgument that says
/// where it looked and what is there.
std::string find_program(const std::string& name, const std::string& first_directory,
                         const std::string& search_path);

/// Looks beside mlaunch first, then in $PATH.
std::string find_program(const std::string& name);

}  // namespace strata::launcher
