#include "train/run/memory_needs.h"

#include "train/engine/memory_report.h"

namespace strata::train {

std::string describe(const MemoryNeeds& needs, const MachineMemory& machine) {
  const auto text = [](std::int64_t bytes) { return format_bytes(static_cast<double>(bytes)); };
  const bool several = machine.local_world > 1;
  std::string amounts = machine.device_bytes ? text(needs.device) + " on the device, " +
                                                   text(needs.host) + " of host memory"
                                             : text(machine.host_share(needs));
  if (needs.disk > 0) amounts += " and " + text(needs.disk) + " on the drive";
  if (several)
    amounts += " per rank, " + text(machine.host_share(needs) * machine.local_world) +
               (machine.device_bytes ? " of host memory" : " on this host") + " in all";
  return amounts;
}

}  // namespace strata::train
