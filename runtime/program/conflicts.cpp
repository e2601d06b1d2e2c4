#include "runtime/program/conflicts.h"

#include <algorithm>
#include <map>

#include "runtime/program/stretches.h"

namespace strata::runtime {
namespace {

/// The nodes that touched a stretch of a root last.
struct Touch {
  int writer = -1;
  std::vector<int> readers;  ///< readers since the last write
};

}  // namespace

std::vector<std::vector<int>> find_conflicts(const Graph& graph) {
  std::map<ValueId, Stretches<Touch>> roots;
  std::vector<std::vector<int>> after(graph.nodes.size());
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& node = graph.nodes[static_cast<std::size_t>(i)];
    std::vector<int>& mine = after[static_cast<std::size_t>(i)];
    const auto touch = [&](ValueId id, bool write) {
      const ByteRange range = range_of(graph, id);
      roots[graph.root_of(id)].visit(range.begin, range.end, [&](Touch& touched) {
        if (write) {
          // Waiting for readers suffices if there are any: each already waits for the writer.
          if (touched.readers.empty()) mine.push_back(touched.writer);
          mine.insert(mine.end(), touched.readers.begin(), touched.readers.end());
          touched.readers.clear();
          touched.writer = i;
        } else {
          mine.push_back(touched.writer);
          touched.readers.push_back(i);
        }
      });
    };
    for (ValueId in : node.inputs) touch(in, false);
    if (node.predicate != kNoValue) touch(node.predicate, false);
    for (ValueId out : node.outputs) touch(out, true);
    std::sort(mine.begin(), mine.end());
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    std::erase_if(mine, [&](int other) { return other < 0 || other == i; });
  }
  return after;
}

}  // namespace strata::runtime
