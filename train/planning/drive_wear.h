// Says how long drives bear what a run writes to them.
#pragma once

#include <string>

#include "machine/machine.h"

namespace strata::train {

/// "it writes 1.20 GiB per step to the drives of a host, which may take 600 TB (data sheet):
/// worn out after 12.5 days", as far as it is known; "" if nothing is written.
/// `written_per_step`: by all ranks of a host, in bytes.
std::string drive_wear_text(const machine::Disk& disk, double written_per_step,
                            double step_seconds);

}  // namespace strata::train
