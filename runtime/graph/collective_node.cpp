#include "runtime/graph/collective_node.h"

#include <array>

namespace strata::runtime {
namespace {

/// Counts only traffic: a sum's one addition per element is negligible.
kernels::Cost collective_cost(kernels::TypeSpan inputs, kernels::TypeSpan outputs,
                              const kernels::Attributes&) {
  kernels::Cost cost;
  for (const auto& type : inputs) cost.bytes += static_cast<double>(type.span_bytes());
  for (const auto& type : outputs) cost.bytes += static_cast<double>(type.span_bytes());
  return cost;
}

const kernels::Operation& operation_of(comm::CollectiveKind kind) {
  using comm::CollectiveKind;
  const auto make = [](CollectiveKind k) {
    return kernels::Operation{.name = name_of(k),
                              .infer = nullptr,
                              .cost = collective_cost,
                              .spread = kernels::kAlike,
                              .run_by = kernels::RunBy::collective};
  };
  static const std::array<kernels::Operation, 8> kOperations{
      make(CollectiveKind::all_gather), make(CollectiveKind::reduce_scatter),
      make(CollectiveKind::all_reduce), make(CollectiveKind::broadcast),
      make(CollectiveKind::all_to_all), make(CollectiveKind::send),
      make(CollectiveKind::receive),    make(CollectiveKind::barrier)};
  return kOperations[static_cast<std::size_t>(kind)];
}

}  // namespace

Node collective_node(const comm::Collective& collective, ValueId input, ValueId output, int block,
                     Pass pass, std::string label) {
  Node node;
  node.operation = &operation_of(collective.kind);
  node.inputs = {input};
  node.outputs = {output};
  node.block = block;
  node.pass = pass;
  node.collective = collective;
  node.queue = Queue::communication;
  node.purpose = TransferPurpose::write_back;
  node.label = std::move(label);
  return node;
}

}  // namespace strata::runtime
