#include "runtime/passes/gradient_gaps.h"

#include <algorithm>
#include <string>
#include <utility>

#include "runtime/graph/node_inserter.h"

namespace strata::runtime {
namespace {

/// Makes a node that fills nothing yet.
Node filler(const Graph& graph, std::size_t unit) {
  Node node;
  node.operation = &kernels::find_operation("fill_zero");
  node.attributes = {{"dtype", static_cast<double>(graph.type(graph.unit_gradients[unit]).dtype)}};
  node.label = "d " + graph.units[unit].name + ".gaps";
  node.block = graph.units[unit].block;
  node.pass = Pass::backward;
  return node;
}

void add_gap(Graph& graph, ValueId gradient, ByteRange range, Node& node) {
  const DType dtype = graph.type(gradient).dtype;
  const std::int64_t elements = (range.end - range.begin) / size_of(dtype);
  const std::string number = node.outputs.empty() ? "" : "." + std::to_string(node.outputs.size());
  node.attributes.set("rows" + number, static_cast<double>(elements));
  node.outputs.push_back(graph.add_view(gradient, range.begin, {dtype, kernels::Shape{elements}},
                                        node.label + number));
}

}  // namespace

void fill_gradient_gaps(Graph& graph) {
  NodeInserter inserter;
  for (std::size_t u = 0; u < graph.units.size(); ++u) {
    if (graph.unit_gradients[u] == kNoValue) continue;
    const ValueId root = graph.root_of(graph.unit_gradients[u]);
    std::vector<ByteRange> written;
    int first_writer = static_cast<int>(graph.nodes.size()) - 1;
    for (int i = static_cast<int>(graph.nodes.size()) - 1; i >= 0; --i)
      for (ValueId out : graph.nodes[i].outputs)
        if (graph.root_of(out) == root) {
          written.push_back(range_of(graph, out));
          first_writer = i;
        }
    std::sort(written.begin(), written.end(),
              [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
    written.push_back({graph.bytes(root), graph.bytes(root)});
    Node fill = filler(graph, u);
    std::int64_t end = 0;
    for (const ByteRange& range : written) {
      if (range.begin > end) add_gap(graph, graph.unit_gradients[u], {end, range.begin}, fill);
      end = std::max(end, range.end);
    }
    if (!fill.outputs.empty()) inserter.before(first_writer, std::move(fill));
  }
  inserter.apply(graph);
}

}  // namespace strata::runtime
