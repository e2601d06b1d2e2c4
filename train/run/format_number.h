// Numbers in texts for people.
#pragma once

#include <string>

namespace strata::train {

/// A number as printf writes it by `format`: "%.2f s".
std::string format_number(const char* format, double value);

}  // namespace strata::train
