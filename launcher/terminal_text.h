// How text looks on a terminal: which of its bytes take room, and how much.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strata::launcher {

/// What a terminal shows of a line in which carriage returns begin it anew: the text after the last
/// one, without what clears the rest of the line.
std::string_view visible_part(std::string_view line);

/// The beginning of `text` that takes at most `columns`. Escape sequences take none and stay whole;
/// colours that the cut leaves on are switched off. East Asian letters and pictures take two
/// columns, marks above letters none.
std::string cut_to_columns(std::string_view text, std::size_t columns);

}  // namespace strata::launcher
