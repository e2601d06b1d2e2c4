// Makes folders that only their user may enter.
#pragma once

#include <string>
#include <vector>

namespace strata::launcher {

/// Makes a folder and those above it; those that are there stay as they are. Adds those that it
/// made to `made`, the outermost first. Returns false, with errno, if that cannot be done.
bool make_folders(const std::string& path, std::vector<std::string>& made);

}  // namespace strata::launcher
