// Makes the tables of docs/configuration.md from the tables that the program obeys.
#pragma once

#include <string>

namespace strata::train {

/// Markdown tables of JSON keys, flags and options: the end of docs/configuration.md.
std::string configuration_reference();

}  // namespace strata::train
