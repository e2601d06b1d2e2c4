#include "offload/offload_activations.h"

#include <map>
#include <string>
#include <vector>

#include "runtime/graph/node_inserter.h"
#include "runtime/graph/transfer_node.h"

namespace strata::offload {
namespace {

using runtime::Graph;
using runtime::kNoValue;
using runtime::Node;
using runtime::Pass;
using runtime::Tier;
using runtime::TransferPurpose;
using runtime::Value;
using runtime::ValueId;

using runtime::SavedAction;

/// The uses of one root.
struct Uses {
  std::int32_t version = 0;  ///< version that the forward pass leaves
  int last_forward = -1;     ///< index of a node
  int first_backward = -1;
  std::vector<int> readers;  ///< nodes in the backward pass
};

class ActivationOffloader {
 public:
  ActivationOffloader(Graph& graph, const std::map<ValueId, SavedAction>& actions)
      : graph_(graph), actions_(actions) {}

  void run() {
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) follow(i);
    for (const auto& [root, uses] : uses_)
      if (!uses.readers.empty()) move(root, uses);
    inserter_.apply(graph_);
  }

 private:
  [[nodiscard]] Value& value(ValueId id) { return graph_.values[static_cast<std::size_t>(id)]; }

  [[nodiscard]] bool leaves(ValueId root) const {
    const auto action = actions_.find(root);
    return action != actions_.end() &&
           (action->second == SavedAction::host || action->second == SavedAction::disk);
  }

  void follow(int i) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(i)];
    const auto touch = [&](ValueId id, bool write) {
      const ValueId root = graph_.root_of(id);
      if (!leaves(root)) return;
      Uses& uses = uses_[root];
      if (node.pass == Pass::forward) {
        uses.last_forward = i;
        if (write) uses.version = value(id).version;
        return;
      }
      if (uses.first_backward < 0) uses.first_backward = i;
      uses.readers.push_back(i);
    };
    for (ValueId in : node.inputs) touch(in, false);
    for (ValueId out : node.outputs) touch(out, true);
    if (node.predicate != kNoValue) touch(node.predicate, false);
  }

  void move(ValueId root, const Uses& uses) {
    const ValueId from = graph_.at_version(root, uses.version);
    const auto twin = [&](const char* where, Tier tier) {
      Value copy = value(root);
      copy.name += where;
      copy.tier = tier;
      copy.version = uses.version;
      return graph_.add_value(std::move(copy));
    };
    const std::string name = value(root).name;
    const auto last = graph_.nodes[static_cast<std::size_t>(uses.last_forward)];
    const auto first = graph_.nodes[static_cast<std::size_t>(uses.first_backward)];
    const auto out = [&](ValueId source, ValueId target, const char* verb) {
      inserter_.after(uses.last_forward,
                      runtime::transfer_node(graph_, source, target, TransferPurpose::write_back,
                                             last.block, last.pass, verb + name));
    };
    const auto in = [&](ValueId source, ValueId target, const char* verb) {
      inserter_.before(uses.first_backward,
                       runtime::transfer_node(graph_, source, target, TransferPurpose::fetch,
                                              first.block, first.pass, verb + name));
    };
    ValueId held = twin(" (host)", Tier::pinned);
    out(from, held, "download ");
    if (actions_.at(root) == SavedAction::disk) {
      const ValueId on_disk = twin(" (disk)", Tier::disk);
      out(held, on_disk, "write ");
      held = twin(" (window)", Tier::pinned);
      in(on_disk, held, "read ");
    }
    const ValueId back = twin(" (back)", Tier::device);
    in(held, back, "upload ");
    for (int reader : uses.readers) {
      Node& node = graph_.nodes[static_cast<std::size_t>(reader)];
      const auto redirect = [&](ValueId& id) {
        if (id == kNoValue || graph_.root_of(id) != root) return;
        const Value view = value(id);
        id = graph_.add_view(back, view.offset_bytes, view.type, view.name);
        value(id).version = view.version;
      };
      for (ValueId& id : node.inputs) redirect(id);
      redirect(node.predicate);
    }
  }

  Graph& graph_;
  const std::map<ValueId, SavedAction>& actions_;
  std::map<ValueId, Uses> uses_;  // roots that leave the device
  runtime::NodeInserter inserter_;
};

}  // namespace

void offload_activations(Graph& graph, const std::map<ValueId, SavedAction>& actions) {
  ActivationOffloader(graph, actions).run();
}

}  // namespace strata::offload
