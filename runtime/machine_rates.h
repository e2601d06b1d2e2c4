// How fast a machine is, as far as the schedule must know: no result depends on it.
#pragma once

#include <cstdint>

#include "kernels/operation.h"
#include "runtime/graph.h"

namespace strata::runtime {

/// Sustained rates, per second. The same on all ranks of a run: they schedule alike.
struct MachineRates {
  double flops = 1e11;          ///< of the device's matrix products
  double memory_bytes = 15e9;   ///< of the device
  double upload_bytes = 6e9;    ///< host to device
  double download_bytes = 6e9;  ///< and back
  double peer_bytes = 4e9;      ///< that a collective moves, counted at one rank
  double host_bytes = 15e9;     ///< host memory under an update
  double disk_read_bytes = 1.5e9;
  double disk_write_bytes = 1.2e9;
  std::int64_t overhead_ns = 2'000;  ///< of every instruction
  /// Cores of a CPU that plays the device, so that transfers take some from it; 0: a device of its
  /// own.
  int shared_cores = 0;

  /// What is typical where nothing was measured. `vector_bits`, of a CPU's widest instructions
  /// (kernels/cpu/cpu_features.h): the same on all ranks.
  static MachineRates typical(const kernels::DeviceCapabilities& device, int vector_bits = 512);
};

/// How long a node takes alone on the machine, ns, from its cost and the bytes of its operands.
std::int64_t cost_ns(const MachineRates& rates, const Graph& graph, const Node& node);

}  // namespace strata::runtime
