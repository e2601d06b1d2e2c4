// Standard output of commands that show runs.
#pragma once

#include <cstdio>
#include <string>

#include "core/error.h"

namespace strata::launcher {

/// Throws HostError if it cannot be written, as into a pipe that nobody reads.
inline void print_text(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw HostError("standard output cannot be written to");
}

}  // namespace strata::launcher
