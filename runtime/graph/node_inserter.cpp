#include "runtime/graph/node_inserter.h"

namespace strata::runtime {

void NodeInserter::apply(Graph& graph) {
  std::size_t count = graph.nodes.size();
  for (const auto& [position, given] : before_) count += given.size();
  std::vector<Node> nodes;
  nodes.reserve(count);
  auto next = graph.nodes.begin();
  const auto take_until = [&](auto end) {
    for (; next != end; ++next) nodes.push_back(std::move(*next));
  };
  for (auto& [position, given] : before_) {
    take_until(graph.nodes.begin() + position);
    for (Node& node : given) nodes.push_back(std::move(node));
  }
  take_until(graph.nodes.end());
  graph.nodes = std::move(nodes);
  before_.clear();
}

}  // namespace strata::runtime
