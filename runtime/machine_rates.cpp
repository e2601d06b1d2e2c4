#include "runtime/machine_rates.h"

#include <algorithm>
#include <cmath>

namespace strata::runtime {

namespace {

/// What steps reach per core and bit of vectors, fp32: 2e11 with AVX-512 (1.96 measured), half with
/// AVX2 (0.96), a quarter with SSE4.1 (0.45).
constexpr double kFlopsPerVectorBit = 2e11 / 512;

}  // namespace

MachineRates MachineRates::typical(const kernels::DeviceCapabilities& device, int vector_bits) {
  MachineRates rates;
  if (device.backend == kernels::DeviceCapabilities::Backend::cpu) {
    // Beside the other ranks. A schedule that thinks computation or gathers slow puts updates long
    // before their use, and the computation then waits for their records.
    rates.flops = kFlopsPerVectorBit * vector_bits * device.workers;
    rates.memory_bytes = 8e9 * device.workers;
    rates.upload_bytes = rates.download_bytes = 8e9;
    rates.peer_bytes = 2e10;
    rates.shared_cores = device.workers;
    return rates;
  }
  rates.flops = 2e14;
  rates.memory_bytes = 1e12;
  rates.upload_bytes = rates.download_bytes = 2.2e10;
  rates.peer_bytes = 2e10;
  rates.host_bytes = 6e10;
  rates.disk_read_bytes = 5e9;
  rates.disk_write_bytes = 4e9;
  return rates;
}

std::int64_t cost_ns(const MachineRates& rates, const Graph& graph, const Node& node) {
  const kernels::Cost cost =
      node.operation->cost(graph.types(node.inputs), graph.types(node.outputs), node.attributes);
  const auto moved = [&] { return static_cast<double>(graph.bytes(node.outputs[0])); };
  double seconds = 0;
  switch (node.queue) {
    case Queue::compute:
      seconds = std::max(cost.flops / rates.flops, cost.bytes / rates.memory_bytes);
      break;
    case Queue::communication:
      seconds = cost.bytes / rates.peer_bytes;
      break;
    case Queue::upload:
      seconds = moved() / rates.upload_bytes;
      break;
    case Queue::download:
      seconds = moved() / rates.download_bytes;
      break;
    case Queue::disk_read:
      seconds = moved() / rates.disk_read_bytes;
      break;
    case Queue::disk_write:
      seconds = moved() / rates.disk_write_bytes;
      break;
    case Queue::host:
      seconds = cost.bytes / rates.host_bytes;
      break;
  }
  return rates.overhead_ns + std::llround(seconds * 1e9);
}

}  // namespace strata::runtime
