// "Did you mean ...?" for misspelt keys, flags and names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// Returns the candidate nearest to `name` (case, '-', '_' and spaces do not count), or "" when
/// none is near: each of its words must differ from its counterpart in at most a third of its
/// length (or one letter), or one name must begin with the other. Of candidates equally near, the
/// one whose length is nearer to that of `name` is returned.
std::string nearest_name(std::string_view name, const std::vector<std::string_view>& candidates);

/// Returns ", did you mean 'x'?", or "" when no candidate is near.
std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace strata
