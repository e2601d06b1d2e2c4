// `mlaunch -H a,b doctor --hosts`: a rank on each host of a run looks whether it can take place.
#pragma once

#include "launcher/command/options.h"

namespace strata::launcher {

/// Gives each host one rank, and no second start, if the command is doctor with --hosts, whatever
/// the options say for the run itself. Throws InvalidArgument if there is one host alone.
void settle_hosts_doctor(Options& options);

}  // namespace strata::launcher
