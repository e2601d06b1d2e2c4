// Adds nodes to a Graph at several places in one go, so that passes can use old positions.
#pragma once

#include <map>
#include <vector>

#include "runtime/graph/graph.h"

namespace strata::runtime {

class NodeInserter {
 public:
  void before(int position, Node node) { before_[position].push_back(std::move(node)); }
  void after(int position, Node node) { before_[position + 1].push_back(std::move(node)); }
  /// Rebuilds the list. Nodes for the same place keep the order in which they were given.
  void apply(Graph& graph);

 private:
  std::map<int, std::vector<Node>> before_;
};

}  // namespace strata::runtime
