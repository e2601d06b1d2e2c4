// Says for people what a plan needs of a machine's memories.
#pragma once

#include <string>

#include "plan/memory_needs.h"

namespace strata::train {

using plan::MachineMemory;
using plan::MemoryNeeds;

/// Needs of each rank, as "5.20 GiB on the device, 40.10 GiB of host memory and 94.00 GiB on the
/// drive"; on the CPU one number, and with several ranks also their sum.
std::string describe(const MemoryNeeds& needs, const MachineMemory& machine);

}  // namespace strata::train
