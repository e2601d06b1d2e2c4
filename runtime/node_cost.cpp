#include "runtime/node_cost.h"

#include <algorithm>
#include <cmath>

namespace strata::runtime {
namespace {

/// FLOP/s of the node's products. A device whose vendor names no rate for the type multiplies it in
/// fp32.
double product_rate(const machine::Device& device, const Graph& graph, const Node& node) {
  const std::span<const ValueId> inputs = node.inputs;
  const DType type = inputs.empty() ? DType::f32 : graph.values[inputs.front()].type.dtype;
  const machine::Figure peak = device.flops(type);
  return (peak.known() ? peak : device.fp32_flops) * device.product_efficiency;
}

}  // namespace

std::int64_t cost_ns(const machine::Machine& machine, const Graph& graph, const Node& node) {
  const kernels::Cost cost =
      node.operation->cost(graph.types(node.inputs), graph.types(node.outputs), node.attributes);
  const auto moved = [&] { return static_cast<double>(graph.bytes(node.outputs[0])); };
  double seconds = 0;
  switch (node.queue) {
    case Queue::compute:
      seconds = std::max(cost.flops / product_rate(machine.device, graph, node),
                         cost.bytes / machine.device.bytes_per_second);
      break;
    case Queue::communication:
      seconds = cost.bytes / machine.peer_rate;
      break;
    case Queue::upload:
      seconds = moved() / machine.link.to_device;
      break;
    case Queue::download:
      seconds = moved() / machine.link.to_host;
      break;
    case Queue::disk_read:
      seconds = moved() / machine.disk.read_rate;
      break;
    case Queue::disk_write:
      seconds = moved() / machine.disk.write_rate;
      break;
    case Queue::host:
      seconds = cost.bytes / machine.memory.bytes_per_second;
      break;
  }
  return std::llround(machine.instruction_seconds * 1e9) + std::llround(seconds * 1e9);
}

}  // namespace strata::runtime
