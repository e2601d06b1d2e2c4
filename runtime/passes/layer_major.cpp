#include "runtime/passes/layer_major.h"

#include <fmt/core.h>
#include <map>
#include <string>

#include "core/check.h"

namespace strata::runtime {
namespace {

class Interleaver {
 public:
  Interleaver(const Graph& one, ValueId loss, int micro_steps, DType accumulated)
      : one_(one), loss_(loss), accumulated_(accumulated) {
    step_.graph = one;
    step_.graph.nodes.clear();
    for (int k = 0; k < micro_steps; ++k) add_micro_step(k);
  }

  LayerMajorStep run() {
    find_last_writers();
    std::size_t begin = 0;
    while (begin < one_.nodes.size()) {
      std::size_t end = begin;
      while (end < one_.nodes.size() && one_.nodes[end].block == one_.nodes[begin].block &&
             one_.nodes[end].pass == one_.nodes[begin].pass)
        ++end;
      for (int k = 0; k < static_cast<int>(ids_.size()); ++k)
        for (std::size_t i = begin; i < end; ++i) add_node(k, i);
      begin = end;
    }
    step_.graph.unit_gradients = sums_;
    return std::move(step_);
  }

 private:
  /// Makes the values of micro-step k; persistent values, except inputs, are shared by all.
  void add_micro_step(int k) {
    std::vector<ValueId> ids;
    for (ValueId id = 0; id < static_cast<ValueId>(one_.values.size()); ++id) {
      const Value& root = one_.values[static_cast<std::size_t>(one_.root_of(id))];
      const bool shared = root.storage == Storage::persistent && root.role != Role::input;
      if (k == 0 || shared) {
        ids.push_back(id);
        continue;
      }
      Value value = one_.values[static_cast<std::size_t>(id)];
      if (value.role == Role::input) value.name = micro_input_name(value.name, k);
      ids.push_back(step_.graph.add_value(std::move(value)));
    }
    for (ValueId id = 0; k > 0 && id < static_cast<ValueId>(one_.values.size()); ++id) {
      const ValueId mine = ids[static_cast<std::size_t>(id)];
      if (mine == id || one_.values[static_cast<std::size_t>(id)].root == kNoValue) continue;
      step_.graph.values[static_cast<std::size_t>(mine)].root =
          ids[static_cast<std::size_t>(one_.root_of(id))];
    }
    step_.losses.push_back(ids[static_cast<std::size_t>(loss_)]);
    ids_.push_back(std::move(ids));
  }

  /// Finds the node after which a unit's gradient is complete.
  void find_last_writers() {
    std::map<ValueId, std::size_t> unit_of;
    for (std::size_t u = 0; u < one_.units.size(); ++u)
      if (one_.unit_gradients[u] != kNoValue) unit_of[one_.root_of(one_.unit_gradients[u])] = u;
    std::map<std::size_t, std::size_t> last;
    for (std::size_t i = 0; i < one_.nodes.size(); ++i)
      for (ValueId out : one_.nodes[i].outputs)
        if (const auto at = unit_of.find(one_.root_of(out)); at != unit_of.end())
          last[at->second] = i;
    for (const auto& [unit, node] : last) ended_[node].push_back(unit);
    sums_.assign(one_.units.size(), kNoValue);
  }

  void add_node(int k, std::size_t i) {
    const std::vector<ValueId>& ids = ids_[static_cast<std::size_t>(k)];
    Node node = one_.nodes[i];
    for (ValueId& in : node.inputs) in = ids[static_cast<std::size_t>(in)];
    for (ValueId& out : node.outputs) out = ids[static_cast<std::size_t>(out)];
    if (node.predicate != kNoValue) node.predicate = ids[static_cast<std::size_t>(node.predicate)];
    step_.graph.nodes.push_back(std::move(node));
    if (const auto ended = ended_.find(i); ended != ended_.end())
      for (std::size_t unit : ended->second) add_up(k, unit);
  }

  /// Adds the gradient of micro-step k to the unit's sum.
  void add_up(int k, std::size_t unit) {
    Graph& graph = step_.graph;
    const ValueId part =
        ids_[static_cast<std::size_t>(k)][static_cast<std::size_t>(one_.unit_gradients[unit])];
    ValueId& sum = sums_[unit];
    const int block = graph.nodes.back().block;
    const std::string& name = graph.units[unit].name;
    if (k > 0) {
      const ValueId next = graph.next_version(sum);
      graph.apply_into("accumulate", {sum, part}, {next}, {}, block, Pass::backward,
                       "accumulate gradient " + name);
      sum = next;
    } else if (graph.type(part).dtype == accumulated_) {
      sum = part;
    } else {
      Value value;
      value.name = "sum/" + name;
      value.type = {accumulated_, graph.type(part).shape};
      value.role = Role::gradient;
      sum = graph.add_value(std::move(value));
      graph.apply_into("convert", {part}, {sum}, {{"dtype", static_cast<double>(accumulated_)}},
                       block, Pass::backward, "convert gradient " + name);
    }
  }

  const Graph& one_;
  ValueId loss_;
  DType accumulated_;
  LayerMajorStep step_;
  std::vector<std::vector<ValueId>> ids_;                  // ids of values, by micro-step
  std::map<std::size_t, std::vector<std::size_t>> ended_;  // node -> units that it completes
  std::vector<ValueId> sums_;                              // one per unit, so far
};

}  // namespace

LayerMajorStep layer_major(const Graph& graph, ValueId loss, int micro_steps, DType accumulated) {
  STRATA_CHECK(micro_steps >= 1, micro_steps);
  return Interleaver(graph, loss, micro_steps, accumulated).run();
}

std::string micro_input_name(const std::string& name, int micro_step) {
  return micro_step == 0 ? name : fmt::format("{}@{}", name, micro_step);
}

}  // namespace strata::runtime
