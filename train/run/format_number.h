// Formats numbers for people.
#pragma once

#include <string>

namespace strata::train {

/// Formats a number as printf does: "%.2f s".
std::string format_number(const char* format, double value);

}  // namespace strata::train
