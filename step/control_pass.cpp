#include "step/control_pass.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "kernels/ops/step_state.h"
#include "runtime/graph/collective_node.h"
#include "runtime/graph/node_inserter.h"
#include "runtime/graph/persistent_values.h"
#include "runtime/graph/state_names.h"
#include "step/update_pass.h"

namespace strata::step {
namespace {

using kernels::AgreedWord;
using kernels::Shape;
using kernels::TensorType;
using runtime::Graph;
using runtime::Node;
using runtime::Pass;
using runtime::Role;
using runtime::ValueId;

TensorType bytes_type(std::size_t bytes) {
  return {DType::u8, Shape{static_cast<std::int64_t>(bytes)}};
}

class ControlPass {
 public:
  ControlPass(Graph& graph, const StepSettings& settings, ValueId word)
      : graph_(graph), settings_(settings), word_(word), block_(update_block(graph)) {}

  void run() {
    add_norms();
    agree();
    control();
    if (updates_run_early()) control_early();
    if (settings_.plan.updates == runtime::Updates::next_step && rounds_at_random(settings_.plan))
      keep_random();
  }

 private:
  /// True if updates come before step_control.
  [[nodiscard]] bool updates_run_early() const {
    return settings_.plan.updates == runtime::Updates::gradient;
  }

  /// Adds norms after the last writer of each unit's reduced gradient, while that is still at hand.
  /// The sum is exact, so its order does not matter. Each element counts on one rank, its owner.
  void add_norms() {
    std::map<ValueId, int> last_writer;  // keyed by root
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i)
      for (ValueId out : graph_.nodes[static_cast<std::size_t>(i)].outputs)
        last_writer[graph_.root_of(out)] = i;
    const int loss = last_writer.at(graph_.root_of(word_));
    std::vector<std::pair<int, int>> places;  // the node to follow, unit
    for (int u = 0; u < static_cast<int>(graph_.units.size()); ++u)
      if (settings_.plan.units[static_cast<std::size_t>(u)].recipe.trainable && owns_some(u))
        places.emplace_back(std::max(last_writer.at(graph_.root_of(gradient(u))), loss), u);
    std::sort(places.begin(), places.end());
    runtime::NodeInserter inserter;
    for (const auto& [place, unit] : places) add_norm(unit, place, inserter);
    inserter.apply(graph_);
  }

  [[nodiscard]] zero::OwnedUnit owned(int unit) const {
    const auto u = static_cast<std::size_t>(unit);
    return zero::owned_unit(graph_.units[u], settings_.plan.units[u], settings_);
  }
  [[nodiscard]] bool owns_some(int unit) const {
    const zero::OwnedUnit o = owned(unit);
    return o.owned_begin < o.owned_end;
  }

  [[nodiscard]] ValueId gradient(int unit) const {
    return graph_.unit_gradients[static_cast<std::size_t>(unit)];
  }

  void add_norm(int unit, int place, runtime::NodeInserter& inserter) {
    const auto u = static_cast<std::size_t>(unit);
    const zero::OwnedUnit o = owned(unit);
    const std::int64_t begin = settings_.plan.units[u].shard_gradient ? o.owned_begin : 0;
    const ValueId own = runtime::flat_view(graph_, gradient(unit), o.owned_begin - begin,
                                           o.owned_end - begin, "own gradient");
    graph_.values[own].distribution = runtime::over_data(kernels::sharded(0));
    Node node;
    node.operation = &kernels::find_operation("norm_squares");
    node.inputs = {word_, own};
    word_ = graph_.next_version(word_);
    node.outputs = {word_};
    node.block = graph_.nodes[static_cast<std::size_t>(place)].block;
    node.pass = graph_.nodes[static_cast<std::size_t>(place)].pass;
    node.label = "norm " + graph_.units[u].name;
    inserter.after(place, std::move(node));
  }

  void agree() {
    if (settings_.plan.mesh.ranks() == 1) return;
    const comm::Mesh& mesh = settings_.plan.mesh;
    const comm::Collective sum =
        comm::integer_sum(AgreedWord::kWords, mesh.ranks(), mesh.spanned(comm::AxisSet::all()));
    const ValueId next = graph_.next_version(word_);
    graph_.nodes.push_back(runtime::collective_node(sum, word_, next, block_, Pass::update,
                                                    "agree on norm and flags"));
    word_ = next;
  }

  void control() {
    const ValueId step = state();
    const ValueId control =
        updates_run_early() ? own_control() : graph_.next_version(shared_control());
    const ValueId metrics = runtime::persistent_value(
        graph_, runtime::kStepMetrics, bytes_type(sizeof(kernels::StepMetrics)), Role::control);
    kernels::Attributes attributes = settings_.control;
    attributes.set("leaves", settings_.plan.leaves());
    const ValueId made = graph_.next_version(metrics);
    add("step_control", {step, word_}, {graph_.next_version(step), control, made},
        std::move(attributes), "step_control");
    publish_metrics(made, control);
  }

  ValueId state() {
    return runtime::persistent_value(graph_, runtime::kStepState,
                                     bytes_type(sizeof(kernels::StepState)), Role::control);
  }

  /// Returns the control that updates read.
  ValueId shared_control() {
    return runtime::persistent_value(graph_, runtime::kStepControl,
                                     bytes_type(sizeof(kernels::StepControl)), Role::control);
  }

  /// Adds a second control, made after early updates: only copies of the metrics read it.
  ValueId own_control() {
    runtime::Value value;
    value.name = "step_control of metrics";
    value.type = bytes_type(sizeof(kernels::StepControl));
    value.role = Role::control;
    return graph_.add_value(std::move(value));
  }

  /// Adds early_control before all other nodes, since updates may run from the first gradient on.
  void control_early() {
    Node node;
    node.operation = &kernels::find_operation("early_control");
    node.attributes = settings_.control;
    node.inputs = {state()};
    node.outputs = {graph_.next_version(shared_control())};
    node.block = block_;
    node.pass = Pass::update;
    node.label = "early_control";
    runtime::NodeInserter inserter;
    inserter.before(0, std::move(node));
    inserter.apply(graph_);
  }

  /// Copies metrics out to one of two slots: the host may read step t's while step t + 1 ends.
  void publish_metrics(ValueId metrics, ValueId control) {
    const std::int64_t size = sizeof(kernels::StepMetrics);
    const ValueId slots =
        runtime::persistent_value(graph_, runtime::kHostMetrics, {DType::u8, Shape{2 * size}},
                                  Role::control, runtime::Tier::pinned);
    for (int slot = 0; slot < 2; ++slot) {
      const std::int64_t flag =
          offsetof(kernels::StepControl, slot) + slot * sizeof(kernels::StepControl::slot[0]);
      add("copy", {metrics},
          {graph_.next_version(
              graph_.add_view(slots, slot * size, graph_.type(metrics), "metrics"))},
          {}, "copy out metrics");
      graph_.nodes.back().predicate =
          graph_.add_view(control, flag, {DType::u8, Shape{sizeof(std::uint32_t)}}, "slot");
    }
  }

  /// Keeps seed and step for stochastic rounding in this step's updates, which run in the next one.
  void keep_random() {
    const TensorType type(DType::i64, Shape{2});
    const ValueId kept =
        runtime::persistent_value(graph_, runtime::kUpdateRandom, type, Role::control);
    add("copy", {graph_.add_view(runtime::random_input(graph_), 0, type, "seed and step")},
        {graph_.next_version(kept)}, {}, "keep seed and step");
  }

  void add(std::string_view operation, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
           kernels::Attributes attributes, std::string label) {
    graph_.apply_into(operation, std::move(inputs), std::move(outputs), std::move(attributes),
                      block_, Pass::update, std::move(label));
  }

  Graph& graph_;
  const StepSettings& settings_;
  ValueId word_;  // the last version written
  int block_;
};

}  // namespace

void control_pass(runtime::Graph& graph, const StepSettings& settings, ValueId word) {
  ControlPass(graph, settings, word).run();
}

}  // namespace strata::step
