// The name of one run: fences its keys and marks its processes.
#pragma once

#include <string>

namespace strata {

/// 16 random hexadecimal digits.
std::string make_run_id();

}  // namespace strata
