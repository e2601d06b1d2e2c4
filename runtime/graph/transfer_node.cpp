#include "runtime/graph/transfer_node.h"

#include "core/check.h"

namespace strata::runtime {
namespace {

const kernels::Operation& disk_operation(bool write) {
  const auto make = [](std::string_view name) {
    return kernels::Operation{.name = name,
                              .infer = nullptr,
                              .cost = kernels::memory_cost,
                              .spread = kernels::kAlike,
                              .run_by = kernels::RunBy::disk,
                              .predicated = true};
  };
  static const kernels::Operation read = make("disk_read"), written = make("disk_write");
  return write ? written : read;
}

}  // namespace

Node transfer_node(const Graph& graph, ValueId from, ValueId to, TransferPurpose purpose, int block,
                   Pass pass, std::string label) {
  const Tier source = graph.values[from].tier, target = graph.values[to].tier;
  STRATA_CHECK(graph.type(from) == graph.type(to), label, graph.type(from).to_string(),
               graph.type(to).to_string());
  STRATA_CHECK(graph.type(from).contiguous(), label, graph.type(from).to_string());
  const auto is_disk = [](Tier tier) { return tier == Tier::disk; };
  Node node;
  if (is_disk(source) || is_disk(target)) {
    STRATA_CHECK((is_disk(source) ? target : source) == Tier::pinned, label,
                 "goes to or from the disk past pinned memory");
    node.operation = &disk_operation(is_disk(target));
    node.queue = is_disk(target) ? Queue::disk_write : Queue::disk_read;
  } else {
    STRATA_CHECK((source == Tier::device) != (target == Tier::device), label,
                 "stays on one side of the link");
    node.operation = &kernels::find_operation("copy");
    node.queue = target == Tier::device ? Queue::upload : Queue::download;
  }
  node.inputs = {from};
  node.outputs = {to};
  node.purpose = purpose;
  node.block = block;
  node.pass = pass;
  node.label = std::move(label);
  return node;
}

bool is_disk_transfer(const kernels::Operation& operation) {
  return operation.run_by == kernels::RunBy::disk;
}

}  // namespace strata::runtime
