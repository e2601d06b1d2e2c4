#include "runtime/recompute.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/check.h"
#include "runtime/stale_read.h"

namespace strata::runtime {
namespace {

/// Output of residual_norm that is the residual stream; the others are those of norm on it.
constexpr std::size_t kSum = 0;

bool is_norm_or_activation(const Node& node) {
  const std::string_view name = node.operation->name;
  return name == "norm" || name == "residual_norm" || name == "gelu" || name == "swiglu";
}

class SegmentRecomputer {
 public:
  SegmentRecomputer(Graph& graph, const RecomputeSegment& segment, RecomputeWhat what)
      : graph_(graph), segment_(segment), what_(what) {}

  void run() {
    find_produced();
    find_wanted();
    if (wanted_.empty()) return;
    std::vector<Node> clones = clone_forward();
    std::vector<Node> nodes;
    bool inserted = false;
    for (Node& node : graph_.nodes) {
      if (inside(node, Pass::backward)) {
        if (!inserted)
          for (Node& clone : clones) nodes.push_back(std::move(clone));
        inserted = true;
        for (ValueId& in : node.inputs) in = mapped(in);
      }
      nodes.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes);
  }

 private:
  [[nodiscard]] bool inside(const Node& node, Pass pass) const {
    return node.pass == pass && node.block >= segment_.first_block &&
           node.block <= segment_.last_block;
  }

  void find_produced() {
    std::set<ValueId> leaving;
    for (const Node& node : graph_.nodes)
      if (inside(node, Pass::forward))
        for (std::size_t i = 0; i < node.outputs.size(); ++i)
          if (may_repeat(node, i)) produced_.insert(graph_.root_of(node.outputs[i]));
    for (const Node& node : graph_.nodes)
      if (!inside(node, Pass::forward) && !inside(node, Pass::backward))
        for (ValueId in : node.inputs) leaving.insert(graph_.root_of(in));
    for (ValueId root : leaving) produced_.erase(root);
  }

  /// Whether output `i` of a forward node may be made again.
  [[nodiscard]] bool may_repeat(const Node& node, std::size_t i) const {
    if (what_ == RecomputeWhat::everything) return true;
    return is_norm_or_activation(node) && !(node.operation->name == "residual_norm" && i == kSum);
  }

  /// The node that makes the wanted outputs of `node` again: itself, or, of a residual_norm whose
  /// sum is kept, the norm of that sum, which has the same bits.
  [[nodiscard]] Node repetition(const Node& node) const {
    if (what_ == RecomputeWhat::everything || node.operation->name != "residual_norm") return node;
    Node norm = node;
    norm.operation = &kernels::find_operation("norm");
    norm.inputs = {node.outputs[kSum], node.inputs[2]};
    if (node.attributes.integer("bias") != 0) norm.inputs.push_back(node.inputs[3]);
    norm.outputs.erase(norm.outputs.begin() + kSum);
    norm.attributes = {};
    for (const char* name : {"eps", "rms"}) norm.attributes.set(name, node.attributes.real(name));
    return norm;
  }

  /// Roots that must be made again: read by the backward pass, or by a node that makes such a root.
  void find_wanted() {
    for (const Node& node : graph_.nodes)
      if (inside(node, Pass::backward))
        for (ValueId in : node.inputs) want(in);
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      if (!inside(*node, Pass::forward) || !makes_wanted(*node)) continue;
      for (ValueId in : repetition(*node).inputs) want(in);
    }
  }

  void want(ValueId id) {
    const ValueId root = graph_.root_of(id);
    if (produced_.count(root) != 0) wanted_.insert(root);
  }

  [[nodiscard]] bool makes_wanted(const Node& node) const {
    return std::any_of(node.outputs.begin(), node.outputs.end(),
                       [&](ValueId out) { return wanted_.count(graph_.root_of(out)) != 0; });
  }

  std::vector<Node> clone_forward() {
    std::vector<Node> clones;
    for (const Node& node : graph_.nodes) {
      if (!inside(node, Pass::forward) || !makes_wanted(node)) continue;
      Node clone = repetition(node);
      clone.pass = Pass::backward;
      clone.label += ".again";
      for (ValueId& in : clone.inputs) in = mapped(in);
      for (ValueId& out : clone.outputs) out = copy_of(out);
      clones.push_back(std::move(clone));
    }
    return clones;
  }

  /// The value to read instead of `id` in the backward pass.
  ValueId mapped(ValueId id) { return wanted_.count(graph_.root_of(id)) != 0 ? copy_of(id) : id; }

  ValueId copy_of(ValueId id) {
    if (auto at = copies_.find(id); at != copies_.end()) return at->second;
    Value value = graph_.values[id];
    value.name += ".again";
    if (value.root != kNoValue) value.root = copy_of(value.root);
    const ValueId copy = graph_.add_value(std::move(value));
    copies_.emplace(id, copy);
    return copy;
  }

  Graph& graph_;
  const RecomputeSegment& segment_;
  RecomputeWhat what_;
  std::set<ValueId> produced_;  // roots made and used inside the segment only
  std::set<ValueId> wanted_;
  std::map<ValueId, ValueId> copies_;
};

}  // namespace

void recompute(Graph& graph, const std::vector<RecomputeSegment>& segments, RecomputeWhat what) {
  for (const RecomputeSegment& segment : segments) SegmentRecomputer(graph, segment, what).run();
  const std::string problem = find_stale_read(graph);
  STRATA_CHECK(problem.empty(), "in a recomputed segment:", problem,
               "(what a segment reads again may not be overwritten in place in the meantime)");
}

}  // namespace strata::runtime
