// The id of one run: it separates the run's keys from other runs' and marks the run's processes.
#pragma once

#include <string>

namespace strata {

/// Returns 16 random hexadecimal digits.
std::string make_run_id();

}  // namespace strata
