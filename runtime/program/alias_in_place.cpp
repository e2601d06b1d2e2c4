#include "runtime/program/alias_in_place.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace strata::runtime {

void alias_in_place(Graph& graph) {
  std::vector<int> first_access(graph.values.size(), -1), last_access = first_access;  // of roots
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& node = graph.nodes[i];
    const auto access = [&](ValueId id) {
      const ValueId root = graph.root_of(id);
      if (first_access[root] < 0) first_access[root] = i;
      last_access[root] = i;
    };
    std::for_each(node.inputs.begin(), node.inputs.end(), access);
    std::for_each(node.outputs.begin(), node.outputs.end(), access);
    if (node.predicate != kNoValue) access(node.predicate);
  }
  // Each root begins a chain of its views: the next one after each value, and the last one.
  std::vector<ValueId> next_view(graph.values.size(), kNoValue), last_view(graph.values.size());
  std::iota(last_view.begin(), last_view.end(), ValueId{0});
  const auto chain = [&](ValueId root, ValueId views) {
    next_view[last_view[root]] = views;
    last_view[root] = last_view[views];
  };
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id)
    if (graph.root_of(id) != id) chain(graph.root_of(id), id);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& node = graph.nodes[i];
    for (const kernels::Alias& alias : node.operation->aliases) {
      if (alias.input >= static_cast<int>(node.inputs.size())) continue;
      const ValueId out = node.outputs[alias.output], in = node.inputs[alias.input];
      const Value& to = graph.values[out];
      const ValueId from = graph.root_of(in);
      const auto uses = [&](const std::vector<ValueId>& ids) {
        return std::count_if(ids.begin(), ids.end(),
                             [&](ValueId id) { return graph.root_of(id) == from; });
      };
      const bool possible = to.root == kNoValue && to.storage == Storage::transient &&
                            graph.values[in].offset_bytes == 0 && graph.type(in).contiguous() &&
                            graph.bytes(in) == graph.bytes(from) &&
                            graph.values[from].storage == Storage::transient &&
                            graph.values[from].tier == to.tier && first_access[out] == i &&
                            last_access[from] == i && uses(node.inputs) == 1 &&
                            uses(node.outputs) == 0 &&
                            (node.predicate == kNoValue || graph.root_of(node.predicate) != from) &&
                            graph.bytes(from) == graph.bytes(out);
      if (!possible) continue;
      // Offsets stay, since both start at the same byte; versions count on from the input's.
      const std::int32_t first = graph.values[in].version + 1;
      for (ValueId id = out; id != kNoValue; id = next_view[id]) {
        graph.values[id].root = from;
        graph.values[id].version += first;
      }
      chain(from, out);
      last_access[from] = last_access[out];
    }
  }
}

}  // namespace strata::runtime
