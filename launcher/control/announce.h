// Words of coordinators and agents to people.
#pragma once

#include <string>

namespace strata::launcher {

/// An action: one line for people, on the screen of the mlaunch whose machine says it.
struct Announce {
  std::string text;
};

}  // namespace strata::launcher
