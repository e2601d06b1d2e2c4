// What a plan needs of a machine's memories, for people.
#pragma once

#include <string>

#include "plan/memory_needs.h"

namespace strata::train {

using plan::MachineMemory;
using plan::MemoryNeeds;

/// "5.20 GiB on the device, 40.10 GiB of host memory and 94.00 GiB on the drive", of each rank; on
/// the CPU one number, and of several ranks the sum.
std::string describe(const MemoryNeeds& needs, const MachineMemory& machine);

}  // namespace strata::train
