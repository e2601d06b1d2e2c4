// Quotes words for a POSIX shell, in commands that are printed or handed to another host.
#pragma once

#include <string>

namespace strata {

/// Returns the word between quotes, whatever is in it.
std::string quoted_for_shell(const std::string& word);

/// Returns the word as it is if no letter of it means anything to a shell, else between quotes.
std::string shell_word(const std::string& word);

}  // namespace strata
