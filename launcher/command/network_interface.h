// Checks what is said of this host's network, before the host takes part in a run.
#pragma once

#include "launcher/command/options.h"
#include "launcher/command/surroundings.h"

namespace strata::launcher {

/// Throws InvalidArgument for `--interface NAME`, or ConfigError for STRATA_INTERFACE=NAME, if
/// ranks of several hosts would be on this one and it has no address on an interface of that name.
/// The message lists those that it has.
void check_network_interface(const Options& options, const Surroundings& surroundings);

}  // namespace strata::launcher
