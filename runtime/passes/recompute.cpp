#include "runtime/passes/recompute.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"
#include "runtime/graph/node_inserter.h"
#include "runtime/passes/stale_read.h"

namespace strata::runtime {
namespace {

class Recomputer {
 public:
  Recomputer(Graph& graph, const std::map<ValueId, SavedAction>& actions)
      : graph_(graph), actions_(actions) {}

  void run() {
    find_wanted();
    if (wanted_.empty()) return;
    const std::vector<int> repeated = list_repeated();
    const std::map<ValueId, int> places = places_of(repeated);
    NodeInserter inserter;
    for (int i : repeated)
      inserter.before(places.at(leader_of(a_wanted_output(node(i)))), clone_of(node(i)));
    for (Node& node : graph_.nodes)
      if (node.pass == Pass::backward)
        for (ValueId& in : node.inputs)
          if (is_wanted(in)) in = copy_of(in);
    inserter.apply(graph_);
  }

 private:
  [[nodiscard]] Node& node(int i) { return graph_.nodes[static_cast<std::size_t>(i)]; }
  [[nodiscard]] bool is_wanted(ValueId id) const { return wanted_.contains(graph_.root_of(id)); }

  /// Finds the roots to recompute: those read by the backward pass, or to make such a root.
  void find_wanted() {
    for (const Node& node : graph_.nodes) {
      if (node.pass == Pass::forward)
        for (ValueId out : node.outputs) made_.insert(graph_.root_of(out));
      if (node.pass == Pass::backward)
        for (ValueId in : node.inputs)
          if (is_recomputed(graph_.root_of(in))) wanted_.insert(graph_.root_of(in));
    }
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      if (!makes_wanted(*node)) continue;
      want_inputs(repetition(*node));
      want_inputs(repetition(*node));  // now as itself if its sum is wanted, too
    }
  }

  void want_inputs(const Node& node) {
    for (ValueId in : node.inputs) {
      const ValueId root = graph_.root_of(in);
      const bool is_gone = made_.contains(root) && !actions_.contains(root);
      if (is_gone || is_recomputed(root)) wanted_.insert(root);
    }
  }

  [[nodiscard]] bool is_recomputed(ValueId root) const {
    const auto action = actions_.find(root);
    return action != actions_.end() && action->second == SavedAction::recompute;
  }

  [[nodiscard]] bool makes_wanted(const Node& node) const {
    return node.pass == Pass::forward &&
           std::ranges::any_of(node.outputs, [&](ValueId out) { return is_wanted(out); });
  }

  [[nodiscard]] ValueId a_wanted_output(const Node& node) const {
    return graph_.root_of(
        *std::ranges::find_if(node.outputs, [&](ValueId out) { return is_wanted(out); }));
  }

  /// Returns the node that makes the wanted outputs of `node` again: `node` itself, or, for a
  /// residual_norm whose sum is kept, the norm of that sum, which has the same bits.
  [[nodiscard]] Node repetition(const Node& node) const {
    if (node.operation->name != "residual_norm" || is_wanted(node.outputs[kResidualSum]))
      return node;
    Node norm = node;
    norm.operation = &kernels::find_operation("norm");
    norm.inputs = {node.outputs[kResidualSum], node.inputs[2]};
    if (node.attributes.integer("bias") != 0) norm.inputs.push_back(node.inputs[3]);
    norm.outputs.erase(norm.outputs.begin() + kResidualSum);
    norm.attributes = {};
    for (const char* name : {"eps", "rms"}) norm.attributes.set(name, node.attributes.real(name));
    return norm;
  }

  /// Lists the nodes that run again, in order, and joins the roots that belong together.
  std::vector<int> list_repeated() {
    std::vector<int> repeated;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      if (!makes_wanted(node(i))) continue;
      repeated.push_back(i);
      const Node again = repetition(node(i));
      const ValueId one = a_wanted_output(again);
      for (const auto* ids : {&again.inputs, &again.outputs})
        for (ValueId id : *ids)
          if (is_wanted(id)) join(one, graph_.root_of(id));
    }
    return repeated;
  }

  /// Returns, by leader, where each group of joined roots is recomputed: a single node just before
  /// the first reader; several, which need memory of their own, before that block's backward pass.
  std::map<ValueId, int> places_of(const std::vector<int>& repeated) {
    std::map<ValueId, int> sizes, places;
    for (int i : repeated) ++sizes[leader_of(a_wanted_output(node(i)))];
    int block = -1, start = 0;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      if (node(i).pass != Pass::backward) continue;
      if (std::exchange(block, node(i).block) != node(i).block) start = i;
      for (ValueId in : node(i).inputs) {
        if (!is_wanted(in)) continue;
        const ValueId leader = leader_of(graph_.root_of(in));
        places.try_emplace(leader, sizes.at(leader) == 1 ? i : start);
      }
    }
    return places;
  }

  ValueId leader_of(ValueId root) {
    ValueId& next = leaders_.try_emplace(root, root).first->second;
    return next == root ? root : next = leader_of(next);
  }
  void join(ValueId a, ValueId b) { leaders_[leader_of(a)] = leader_of(b); }

  Node clone_of(const Node& node) {
    Node clone = repetition(node);
    clone.pass = Pass::backward;
    clone.label += ".again";
    for (ValueId& in : clone.inputs)
      if (is_wanted(in)) in = copy_of(in);
    for (ValueId& out : clone.outputs) out = copy_of(out);
    return clone;
  }

  ValueId copy_of(ValueId id) {
    if (auto at = copies_.find(id); at != copies_.end()) return at->second;
    Value value = graph_.values[static_cast<std::size_t>(id)];
    value.name += ".again";
    if (value.root != kNoValue) value.root = copy_of(value.root);
    const ValueId copy = graph_.add_value(std::move(value));
    copies_.emplace(id, copy);
    return copy;
  }

  Graph& graph_;
  const std::map<ValueId, SavedAction>& actions_;
  std::set<ValueId> made_;    // roots that the forward pass makes
  std::set<ValueId> wanted_;  // roots of made_ that are recomputed
  std::map<ValueId, ValueId> leaders_, copies_;
};

}  // namespace

void recompute(Graph& graph, const std::map<ValueId, SavedAction>& actions) {
  Recomputer(graph, actions).run();
  if (const std::string problem = find_stale_read(graph); !problem.empty())
    throw InvalidArgument("the Plan recomputes what cannot be made again: " + problem +
                          "; keep what is overwritten, or what is made of it");
}

}  // namespace strata::runtime
