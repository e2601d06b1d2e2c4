#include "runtime/passes/stale_read.h"

#include <fmt/core.h>

namespace strata::runtime {
namespace {

class Reader {
 public:
  explicit Reader(const Graph& graph) : graph_(graph), writes_(graph.values.size()) {}

  std::string run() {
    for (const Node& node : graph_.nodes) {
      for (ValueId in : node.inputs) read(node, in);
      if (node.predicate != kNoValue) read(node, node.predicate);
      if (!problem_.empty()) break;
      for (ValueId out : node.outputs) writes_[graph_.root_of(out)].push_back({out, &node});
    }
    return problem_;
  }

 private:
  struct Write {
    ValueId value;
    const Node* node;
  };

  void read(const Node& node, ValueId id) {
    const Value& value = graph_.values[id];
    const bool transient = graph_.values[graph_.root_of(id)].storage == Storage::transient;
    std::int32_t held = transient ? -1 : 0;
    const Node* writer = nullptr;
    for (const Write& write : writes_[graph_.root_of(id)])
      if (graph_.values[write.value].version > held && overlap(graph_, write.value, id)) {
        held = graph_.values[write.value].version;
        writer = write.node;
      }
    if (held == value.version || graph_.bytes(id) == 0) return;
    problem_ = fmt::format(
        "'{}' reads version {} of '{}', which {}", node.label, value.version, value.name,
        held < value.version
            ? std::string("nobody wrote before")
            : fmt::format("was overwritten before: '{}' left version {}", writer->label, held));
  }

  const Graph& graph_;
  std::vector<std::vector<Write>> writes_;  // one list per root: writes so far
  std::string problem_;
};

}  // namespace

std::string find_stale_read(const Graph& graph) { return Reader(graph).run(); }

}  // namespace strata::runtime
