// The tables of docs/configuration.md, made from the tables that the program obeys.
#pragma once

#include <string>

namespace strata::train {

/// Markdown: JSON keys, flags, options. docs/configuration.md ends with it (a test compares).
std::string configuration_reference();

}  // namespace strata::train
