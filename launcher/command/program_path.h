// The search for the program to start.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata::launcher {

/// Returns `name` itself when it contains a slash; else the executable of that name in
/// `first_directory` (empty: there is none, and the current folder is none either), else in the
/// colon-separated `search_path`. Throws InvalidArgument that says where it looked, what is there,
/// and which program or which of `words`, that are commands of mlaunch, may be meant.
std::string find_program(const std::string& name, const std::string& first_directory,
                         const std::string& search_path,
                         const std::vector<std::string_view>& words = {});

/// Looks beside mlaunch first, then in $PATH.
std::string find_program(const std::string& name, const std::vector<std::string_view>& words = {});

}  // namespace strata::launcher
