#include "runtime/program/node_demand.h"

namespace strata::runtime {
namespace {

machine::Resource resource_of(Queue queue) {
  switch (queue) {
    case Queue::compute:
      return machine::Resource::device;
    case Queue::communication:
      return machine::Resource::peers;
    case Queue::upload:
      return machine::Resource::upload;
    case Queue::download:
      return machine::Resource::download;
    case Queue::disk_read:
      return machine::Resource::disk_read;
    case Queue::disk_write:
      return machine::Resource::disk_write;
    case Queue::host:
      break;
  }
  return machine::Resource::host;
}

bool is_float(DType type) {
  return type == DType::f32 || type == DType::bf16 || type == DType::f16;
}

DType product_type(const Graph& graph, const Node& node) {
  for (const auto* operands : {&node.inputs, &node.outputs})
    for (const ValueId id : *operands)
      if (const DType type = graph.values[id].type.dtype; is_float(type)) return type;
  return DType::f32;
}

}  // namespace

machine::Demand demand_of(const Graph& graph, const Node& node, const comm::MeshSeat& where) {
  const kernels::Cost cost =
      node.operation->cost(graph.types(node.inputs), graph.types(node.outputs), node.attributes);
  machine::Demand demand{.resource = resource_of(node.queue),
                         .type = product_type(graph, node),
                         .flops = cost.flops,
                         .bytes = cost.bytes};
  if (node.collective)
    demand.moved_bytes = comm::sent_bytes(where.on(node.collective->axes), *node.collective);
  else if (node.queue != Queue::compute && node.queue != Queue::host)
    demand.moved_bytes = graph.bytes(node.outputs[0]);
  return demand;
}

}  // namespace strata::runtime
