#include "runtime/graph/node_inserter.h"

namespace strata::runtime {

void NodeInserter::apply(Graph& graph) {
  std::vector<Node> nodes;
  const int count = static_cast<int>(graph.nodes.size());
  for (int i = 0; i <= count; ++i) {
    if (auto at = before_.find(i); at != before_.end())
      for (Node& node : at->second) nodes.push_back(std::move(node));
    if (i < count) nodes.push_back(std::move(graph.nodes[i]));
  }
  graph.nodes = std::move(nodes);
  before_.clear();
}

}  // namespace strata::runtime
