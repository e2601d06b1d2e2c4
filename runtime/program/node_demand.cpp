#include "runtime/program/node_demand.h"

#include <array>
#include <bit>
#include <span>

#include "core/hash.h"
#include "runtime/graph/transfer_node.h"

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

/// Numbers that tell kinds of instructions apart, as one hash.
class SignatureHash {
 public:
  void add(std::uint64_t number) {
    if (count_ == numbers_.size()) fold();
    numbers_[count_++] = number;
  }
  void add(std::string_view text) { add(hash_64(std::as_bytes(std::span(text)))); }
  void add(const kernels::TensorType& type) {
    add(static_cast<std::uint64_t>(type.dtype));
    for (int i = 0; i < type.shape.ndim(); ++i) add(static_cast<std::uint64_t>(type.shape[i]));
    add(static_cast<std::uint64_t>(type.contiguous() ? 0 : type.row_stride));
  }
  [[nodiscard]] std::uint64_t value() {
    fold();
    return numbers_[0] == 0 ? 1 : numbers_[0];  // 0 stands for none
  }

 private:
  void fold() {
    numbers_[0] = hash_64(std::as_bytes(std::span(numbers_).first(count_)));
    count_ = 1;
  }
  std::array<std::uint64_t, 64> numbers_{};
  std::size_t count_ = 0;
};

/// Disk transfers have none: the disk is measured as a whole.
std::uint64_t signature_of(const Graph& graph, const Node& node) {
  if (is_disk_transfer(*node.operation)) return 0;
  SignatureHash hash;
  hash.add(node.operation->name);
  if (node.collective) {  // the same on all its ranks, whatever part each has
    hash.add(comm::fingerprint(*node.collective));
    return hash.value();
  }
  hash.add(static_cast<std::uint64_t>(node.queue));
  for (const ValueId id : node.inputs) hash.add(graph.type(id));
  hash.add(node.outputs.size());
  for (const ValueId id : node.outputs) hash.add(graph.type(id));
  for (const auto& [name, value] : node.attributes.items()) {
    hash.add(name);
    hash.add(std::bit_cast<std::uint64_t>(value));
  }
  return hash.value();
}

}  // namespace

machine::Demand demand_of(const Graph& graph, const Node& node, const comm::MeshSeat& where) {
  const kernels::Cost cost =
      node.operation->cost(graph.types(node.inputs), graph.types(node.outputs), node.attributes);
  machine::Demand demand{.resource = resource_of(node.queue),
                         .type = product_type(graph, node),
                         .flops = cost.flops,
                         .bytes = cost.bytes,
                         .operation = node.operation->name,
                         .signature = signature_of(graph, node)};
  if (node.collective) {
    const comm::Seat seat = where.on(node.collective->axes);
    demand.moved_bytes = comm::sent_bytes(seat, *node.collective);
    demand.ranks = seat.ranks;
  } else if (node.queue != Queue::compute && node.queue != Queue::host) {
    demand.moved_bytes = graph.bytes(node.outputs[0]);
  }
  return demand;
}

}  // namespace strata::runtime
