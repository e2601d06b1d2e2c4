// Machines of --hardware with some of their figures replaced: "rtx4090,link=12GB/s,disk=none".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.h"

namespace strata::machine {

/// Loads "NAME|FILE[,KEY=VALUE...]" (docs/formats/hardware.md). Replaced figures are given ones,
/// and the description lists them. Throws ConfigError that names the part, what was found and what
/// is expected.
Machine load_overridden_hardware(const std::string& text);

/// Splits a list of such machines at commas: a part with '=' belongs to the machine before it.
std::vector<std::string> split_hardware_list(std::string_view text);

/// Replaces figures by "KEY=VALUE[,KEY=VALUE...]"; "" replaces none. Throws ConfigError, which
/// begins with `whole`, and leaves `machine` in any state then.
void override_hardware(Machine& machine, std::string_view overrides, std::string_view whole);

}  // namespace strata::machine
