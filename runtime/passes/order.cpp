#include "runtime/passes/order.h"

#include <algorithm>
#include <map>
#include <set>

namespace strata::runtime {
namespace {

bool gathers_parameters(const Graph& graph, const Node& node) {
  if (!node.collective || node.pass == Pass::update) return false;
  const Value& whole = graph.values[graph.root_of(node.outputs[0])];
  return whole.role == Role::parameter && whole.storage == Storage::transient;
}

}  // namespace

void hoist_gathers(Graph& graph, const TransferLimits& limits) {
  const int count = static_cast<int>(graph.nodes.size());
  std::map<ValueId, int> last_use;
  for (int i = 0; i < count; ++i)
    for (ValueId in : graph.nodes[i].inputs) last_use[graph.root_of(in)] = i;

  // Maps each gather to its new position: before node `target` of the old list.
  std::vector<int> target(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) target[i] = i;
  std::vector<bool> is_gather(static_cast<std::size_t>(count), false);
  std::vector<std::int64_t> live(static_cast<std::size_t>(count), 0);   // gathered elements
  std::vector<std::int64_t> ahead(static_cast<std::size_t>(count), 0);  // gathered and unused
  std::map<ValueId, int> last_writer;                                   // root -> node so far
  std::set<ValueId> begun;  // roots of which a piece was gathered: live as a whole from then on
  int previous = 0;         // gathers keep their order
  bool in_forward = true;   // true until the backward pass begins
  for (int i = 0; i < count; ++i) {
    for (ValueId out : graph.nodes[i].outputs) last_writer[graph.root_of(out)] = i;
    // Collectives of the last step's updates and the sum of targets keep their place among gathers,
    // also on ranks that have nothing to update. Updates in the backward pass come after all
    // gathers of what they write.
    in_forward = in_forward && graph.nodes[i].pass != Pass::backward;
    if (!gathers_parameters(graph, graph.nodes[i])) {
      if (graph.nodes[i].collective && in_forward) previous = i + 1;
      continue;
    }
    const ValueId root = graph.root_of(graph.nodes[i].outputs[0]);
    const std::int64_t elements = graph.type(graph.nodes[i].outputs[0]).shape.elements();
    const std::int64_t buffer = begun.insert(root).second ? graph.type(root).shape.elements() : 0;
    // The gather stays after the node that writes the version of the shard that it reads.
    const auto writer = last_writer.find(graph.root_of(graph.nodes[i].inputs[0]));
    const int earliest = std::max(previous, writer == last_writer.end() ? 0 : writer->second + 1);
    int at = i;
    while (at > earliest && live[at - 1] + buffer <= limits.max_live_elements &&
           ahead[at - 1] + elements <= limits.prefetch_elements)
      --at;
    for (int j = at; j < i; ++j) ahead[j] += elements;
    for (int j = at; j <= last_use[root]; ++j) live[j] += buffer;
    target[i] = at;
    is_gather[i] = true;
    previous = at;
  }

  std::vector<int> order(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    if (target[a] != target[b]) return target[a] < target[b];
    // A moved gather comes directly before its target, but after earlier gathers.
    return is_gather[a] > is_gather[b];
  });
  std::vector<Node> nodes;
  nodes.reserve(graph.nodes.size());
  for (int i : order) nodes.push_back(std::move(graph.nodes[i]));
  graph.nodes = std::move(nodes);
}

}  // namespace strata::runtime
