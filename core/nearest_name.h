// "Did you mean ...?" for misspelt keys, flags and names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// The candidate nearest to `name` (case, '-' and '_' do not count), or "" when none is near enough
/// to be what was meant: each of its words at most a third of its length apart from its
/// counterpart, or one is the beginning of the other.
std::string nearest_name(std::string_view name, const std::vector<std::string_view>& candidates);

/// ", did you mean 'x'?" or "".
std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace strata
