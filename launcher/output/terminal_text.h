// Text on a terminal: which of its bytes are visible, and how many columns they take.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strata::launcher {

/// Returns what a terminal shows of a line with carriage returns: the text after the last one,
/// without sequences that clear the rest of the line.
std::string_view visible_part(std::string_view line);

/// Returns the beginning of `text` that fits into `columns`. Escape sequences take no column and
/// stay whole; a cut text ends by switching colours off. East Asian letters and pictures take two
/// columns, marks above letters none.
std::string cut_to_columns(std::string_view text, std::size_t columns);

}  // namespace strata::launcher
