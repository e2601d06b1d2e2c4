// Options that do nothing in the run that they are typed for. They are refused: whoever types them
// relies on them.
#pragma once

#include <string>
#include <vector>

#include "launcher/command/option_table.h"
#include "launcher/command/options.h"
#include "launcher/command/settle_hosts.h"

namespace strata::launcher {

/// An option as typed, with its value: "--grace 60".
struct TypedOption {
  OptionUse use = OptionUse::help;
  std::string text;
};

/// Throws InvalidArgument with a line for each option without effect, which says what to write
/// instead. `given` and `options` are settled.
void refuse_without_effect(const std::vector<TypedOption>& typed, const GivenHosts& given,
                           const Options& options);

}  // namespace strata::launcher
