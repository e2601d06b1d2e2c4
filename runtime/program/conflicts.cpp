#include "runtime/program/conflicts.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace strata::runtime {
namespace {

/// The nodes that touched a stretch of a root last.
struct Touch {
  int writer = -1;
  std::vector<int> readers;  ///< readers since the last write
};

/// Disjoint stretches of one root, keyed by begin.
class Stretches {
 public:
  Stretches() { stretches_[0] = Touch{}; }

  template <typename Visit>
  void visit(const ByteRange& range, const Visit& visitor) {
    const auto from = split(range.begin);
    split(range.end);
    for (auto at = from; at != stretches_.end() && at->first < range.end; ++at) visitor(at->second);
  }

 private:
  std::map<std::int64_t, Touch>::iterator split(std::int64_t at) {
    const auto next = stretches_.lower_bound(at);
    if (next != stretches_.end() && next->first == at) return next;
    return stretches_.emplace_hint(next, at, std::prev(next)->second);
  }
  std::map<std::int64_t, Touch> stretches_;
};

}  // namespace

std::vector<std::vector<int>> find_conflicts(const Graph& graph) {
  std::map<ValueId, Stretches> roots;
  std::vector<std::vector<int>> after(graph.nodes.size());
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& node = graph.nodes[static_cast<std::size_t>(i)];
    std::vector<int>& mine = after[static_cast<std::size_t>(i)];
    const auto touch = [&](ValueId id, bool write) {
      const ByteRange range = range_of(graph, id);
      if (range.begin == range.end) return;
      roots[graph.root_of(id)].visit(range, [&](Touch& touched) {
        if (write) {
          // Readers come after the writer that they read from.
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
