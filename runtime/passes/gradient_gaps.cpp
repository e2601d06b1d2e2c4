#include "runtime/passes/gradient_gaps.h"

#include <algorithm>

#include "runtime/graph/node_inserter.h"

namespace strata::runtime {
namespace {

Node fill(Graph& graph, std::size_t unit, ByteRange range) {
  const ValueId gradient = graph.unit_gradients[unit];
  const DType dtype = graph.type(gradient).dtype;
  const std::int64_t elements = (range.end - range.begin) / size_of(dtype);
  Node node;
  node.operation = &kernels::find_operation("fill_zero");
  node.attributes = {
      {"rows", static_cast<double>(elements)}, {"cols", 1}, {"dtype", static_cast<double>(dtype)}};
  node.label = "d " + graph.units[unit].name + ".gap";
  node.block = graph.units[unit].block;
  node.pass = Pass::backward;
  node.outputs = {graph.add_view(gradient, range.begin,
                                 kernels::TensorType(dtype, kernels::Shape{elements}), node.label)};
  return node;
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
    std::int64_t end = 0;
    for (const ByteRange& range : written) {
      if (range.begin > end) inserter.before(first_writer, fill(graph, u, {end, range.begin}));
      end = std::max(end, range.end);
    }
  }
  inserter.apply(graph);
}

}  // namespace strata::runtime
