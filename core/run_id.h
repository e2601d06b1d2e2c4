// The id of one run: it separates the run's keys from other runs' and marks the run's processes.
#pragma once

#include <string>
#include <string_view>

namespace strata {

/// Returns 16 random hexadecimal digits.
std::string make_run_id();
/// True for what make_run_id may return, and for nothing else.
bool is_run_id(std::string_view text);

}  // namespace strata
