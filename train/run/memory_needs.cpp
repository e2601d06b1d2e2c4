#include "train/run/memory_needs.h"

#include "core/format_bytes.h"

namespace strata::train {

std::string describe(const MemoryNeeds& needs, const MachineMemory& machine) {
  const bool several = machine.local_world > 1;
  std::string amounts = machine.device_bytes ? format_bytes(needs.device) + " on the device, " +
                                                   format_bytes(needs.host) + " of host memory"
                                             : format_bytes(machine.host_share(needs));
  if (needs.disk > 0) amounts += " and " + format_bytes(needs.disk) + " on the drive";
  if (several)
    amounts += " per rank, " + format_bytes(machine.host_share(needs) * machine.local_world) +
               (machine.device_bytes ? " of host memory" : " on this host") + " in all";
  return amounts;
}

}  // namespace strata::train
