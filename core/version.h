// The version of Strata.
#pragma once

#include <string>
#include <string_view>

namespace strata {

/// Returns the version of this build, such as "0.1.0".
std::string_view version();

/// Returns what --version of a program prints, without the end of the line.
std::string version_text(std::string_view program);

}  // namespace strata
