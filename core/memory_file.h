// Makes files in memory, which hand a text to a program that this one starts.
#pragma once

#include <string_view>

#include "core/unique_fd.h"

namespace strata {

/// Returns a file in memory that holds `text`, to be read from its beginning. Unlike a pipe it
/// cannot block when full or cause SIGPIPE. `name` shows in /proc. Throws HostError.
UniqueFd memory_file(const char* name, std::string_view text = {});

}  // namespace strata
