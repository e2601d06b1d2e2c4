// A range of whole numbers as options have it: MIN:MAX.
#pragma once

#include <string>

namespace strata::launcher {

struct NumberRange {
  int least = 0;
  int most = 0;
};

/// Reads "MIN:MAX", or "N" for N:N. `option`: its name, for messages. Throws InvalidArgument unless
/// lowest <= MIN <= MAX <= highest.
NumberRange parse_range(const std::string& option, const std::string& text, int lowest,
                        int highest);

}  // namespace strata::launcher
