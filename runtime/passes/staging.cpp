#include "runtime/passes/staging.h"

#include <algorithm>

#include "core/check.h"
#include "runtime/graph/node_inserter.h"

namespace strata::runtime {
namespace {

ValueId add_twin(Graph& graph, ValueId of, Role role) {
  Value twin;
  twin.name = host_name(graph.values[of].name);
  twin.type = graph.type(of);
  twin.tier = Tier::pinned;
  twin.storage = Storage::persistent;
  twin.role = role;
  twin.distribution = graph.values[of].distribution;
  return graph.add_value(std::move(twin));
}

bool is_read(const Graph& graph, ValueId root) {
  return std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return std::ranges::any_of(node.inputs, [&](ValueId in) { return graph.root_of(in) == root; });
  });
}

Node copy(const Graph& graph, ValueId from, ValueId to, std::string label) {
  Node node;
  node.operation = &kernels::find_operation("copy");
  node.inputs = {from};
  node.outputs = {to};
  node.label = std::move(label);
  if (!graph.nodes.empty()) {
    node.block = graph.nodes.back().block;
    node.pass = graph.nodes.back().pass;
  }
  return node;
}

}  // namespace

void stage_inputs(Graph& graph) {
  NodeInserter inserter;
  const auto roots = static_cast<ValueId>(graph.values.size());
  for (ValueId id = 0; id < roots; ++id) {
    const Value& value = graph.values[id];
    if (value.role != Role::input || value.tier != Tier::device || value.root != kNoValue) continue;
    const std::string label = "copy in " + value.name;
    const ValueId twin = add_twin(graph, id, Role::input);
    graph.values[id].storage = Storage::transient;
    if (!is_read(graph, id)) continue;
    Node node = copy(graph, twin, id, label);
    node.block = 0;
    node.pass = Pass::forward;
    inserter.before(0, std::move(node));
  }
  inserter.apply(graph);
}

void stage_output(Graph& graph, const std::string& name) {
  ValueId last = kNoValue;
  for (const Node& node : graph.nodes)
    for (ValueId out : node.outputs) {
      const Value& root = graph.values[graph.root_of(out)];
      if (root.name == name && root.storage == Storage::persistent) last = out;
    }
  STRATA_CHECK(last != kNoValue && graph.bytes(last) == graph.bytes(graph.root_of(last)),
               "no node writes the whole of", name);
  const ValueId twin = add_twin(graph, graph.root_of(last), Role::control);
  graph.nodes.push_back(copy(graph, last, graph.next_version(twin), "copy out " + name));
}

}  // namespace strata::runtime
