#include "step/step.h"

#include <algorithm>

#include "core/check.h"
#include "kernels/ops/step_control.h"
#include "kernels/ops/step_state.h"
#include "runtime/graph/collective_node.h"
#include "runtime/graph/node_inserter.h"
#include "runtime/graph/persistent_values.h"
#include "runtime/graph/state_names.h"
#include "runtime/passes/order.h"
#include "runtime/passes/staging.h"
#include "step/check_plan.h"
#include "step/control_pass.h"
#include "step/optimizer_storage.h"
#include "step/update_pass.h"
#include "zero/gather_pass.h"
#include "zero/partition.h"
#include "zero/reduction_pass.h"

namespace strata::step {
namespace {

using kernels::AgreedWord;
using kernels::Shape;
using kernels::TensorType;
using runtime::Graph;
using runtime::Role;
using runtime::Tier;
using runtime::ValueId;

const TensorType kWordType{DType::i64, Shape{AgreedWord::kWords}};

/// Gives gradient_scale the valid targets of the whole step. The Program that begins the step takes
/// the host's count and adds those of the other ranks `over` the mesh; the Programs of the step's
/// other micro-steps find the sum. Each of `leaves` is one part of the mean.
void count_targets(Graph& graph, const comm::Mesh& over, bool begins, int leaves) {
  const TensorType type(DType::i64, Shape{1});
  ValueId targets = runtime::persistent_value(graph, runtime::kStepTargets, type, Role::control);
  if (begins) {
    const ValueId host = runtime::persistent_value(graph, runtime::host_name(runtime::kStepTargets),
                                                   type, Role::input, Tier::pinned);
    runtime::NodeInserter inserter;
    runtime::Node copy;
    copy.operation = &kernels::find_operation("copy");
    copy.inputs = {host};
    copy.outputs = {targets = graph.next_version(targets)};
    copy.label = "copy in targets of the step";
    inserter.before(0, std::move(copy));
    if (over.ranks() > 1) {
      graph.values[host].distribution = runtime::over_data(kernels::kPartialSum);
      const ValueId sum = graph.next_version(targets);
      inserter.before(
          0, runtime::collective_node(
                 comm::integer_sum(1, over.ranks(), over.spanned(comm::AxisSet::all())), targets,
                 sum, 0, runtime::Pass::forward, "add up targets of the step"));
      targets = sum;
    }
    inserter.apply(graph);
  }
  for (runtime::Node& node : graph.nodes) {
    if (node.operation->name != "gradient_scale") continue;
    node.inputs[1] = targets;
    if (leaves > 1) node.attributes.set("leaves", leaves);
  }
}

/// Adds the agreed word: the host's word (flags) starts that of the step, and every micro-step adds
/// its loss. Returns the word with this micro-step's loss in it.
ValueId add_word(Graph& graph, const std::vector<ValueId>& losses, bool begins, int leaves) {
  const auto part_of_sum = [&](const char* name, Role role, Tier tier) {
    const ValueId root = runtime::persistent_value(graph, name, kWordType, role, tier);
    graph.values[root].distribution = runtime::over_data(kernels::kPartialSum);
    return root;
  };
  ValueId word = part_of_sum(runtime::kAgreedWord, Role::control, Tier::device);
  runtime::NodeInserter inserter;
  const auto make = [&](std::string_view operation, std::vector<ValueId> inputs) {
    runtime::Node node;
    node.operation = &kernels::find_operation(operation);
    node.inputs = std::move(inputs);
    word = graph.next_version(word);
    node.outputs = {word};
    node.label = std::string(operation) + " agreed_word";
    return node;
  };
  if (begins) {
    const ValueId host = part_of_sum(runtime::kHostWord, Role::input, Tier::pinned);
    inserter.before(0, make("copy", {host}));
  }
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const auto& outputs = graph.nodes[i].outputs;
    const auto loss =
        std::find_first_of(outputs.begin(), outputs.end(), losses.begin(), losses.end());
    if (loss == outputs.end()) continue;
    runtime::Node node = make("add_loss", {word, *loss});
    if (leaves > 1) node.attributes.set("leaves", leaves);
    node.block = graph.nodes[i].block;
    inserter.after(i, std::move(node));
  }
  inserter.apply(graph);
  return word;
}

}  // namespace

void declare_state(runtime::PersistentLayout& layout,
                   const std::vector<runtime::ParameterUnit>& units, const StepSettings& settings) {
  require_none(find_problems(settings.plan, units));
  const auto flat = [&](const std::string& name, DType dtype, std::int64_t elements, Role role,
                        Tier tier) {
    layout.add(name, TensorType(dtype, Shape{elements}), tier, role);
  };
  for (std::size_t u = 0; u < units.size(); ++u) {
    const runtime::ParameterUnit& unit = units[u];
    const runtime::UnitPlan& plan = settings.plan.units[u];
    const zero::OwnedUnit o = zero::owned_unit(unit, plan, settings);
    const std::int64_t shard = o.owned_end - o.owned_begin;
    flat(zero::parameter_storage(plan), plan.recipe.dtype,
         plan.shard_parameter ? shard : unit.elements, Role::parameter, plan.parameter_tier);
    if (!plan.recipe.trainable) continue;
    flat(runtime::accumulator_name(unit.name), settings.plan.gradient.accumulated,
         plan.shard_gradient ? shard : unit.elements, Role::gradient, plan.gradient_tier);
    for (int level = 0; level < zero::partial_sum_levels(settings.plan); ++level)
      flat(runtime::partial_sum_name(unit.name, level), DType::f32, shard, Role::gradient,
           plan.gradient_tier);
    for (const OptimizerTile& tile : optimizer_tiles(unit, plan, o, settings)) {
      const bool is_record = plan.optimizer_tier != Tier::device;
      for (const StateStorage& s : state_storages(unit, plan, o, tile)) {
        layout.add(s.name, s.storage_type, s.tier, Role::optimizer);
        if (is_record) break;  // it has all kinds
      }
      if (!is_record) break;  // one storage of each kind has all tiles
    }
  }
}

namespace {

/// Places whole parameters where the Plan says. Shards are added with their home. So are units that
/// are kept in another type than operations read; gather_pass makes the type that operations read.
void place_parameters(Graph& graph, const StepSettings& settings) {
  for (std::size_t u = 0; u < graph.units.size(); ++u) {
    const runtime::UnitPlan& plan = settings.plan.units[u];
    graph.set_home(graph.unit_values[u], plan.parameter_tier);
    if (graph.type(graph.unit_values[u]).dtype != plan.recipe.dtype)
      graph.values[graph.unit_values[u]].storage = runtime::Storage::transient;
  }
}

}  // namespace

Graph lower_micro_step(Graph graph, const std::vector<ValueId>& losses,
                       const StepSettings& settings, const zero::MicroStepKind& kind) {
  const runtime::Updates updates = settings.plan.updates;
  place_parameters(graph, settings);
  zero::reduction_pass(graph, settings, kind);
  const ValueId word = add_word(graph, losses, kind.begins_step, settings.plan.leaves_per_rank());
  count_targets(graph, settings.plan.mesh, kind.begins_step, settings.plan.leaves());
  if (kind.ends_step) control_pass(graph, settings, word);
  if (kind.ends_step && updates == runtime::Updates::step_end) update_pass(graph, settings);
  zero::gather_pass(graph, settings);
  if (kind.ends_step && updates == runtime::Updates::gradient) early_update_pass(graph, settings);
  if (kind.begins_step && updates == runtime::Updates::next_step) late_update_pass(graph, settings);
  runtime::hoist_gathers(graph, settings.plan.limits);
  return graph;
}

Graph lower_drain(Graph graph, const StepSettings& settings) {
  graph.nodes.clear();
  place_parameters(graph, settings);
  late_update_pass(graph, settings);
  const std::int64_t bytes = sizeof(kernels::StepControl);
  const ValueId control = runtime::persistent_root(graph, runtime::kStepControl,
                                                   {DType::u8, Shape{bytes}}, Role::control);
  graph.apply_into(
      "fill_zero", {}, {graph.at_version(control, 1)},
      {{"dtype", static_cast<double>(DType::u8)}, {"rows", static_cast<double>(bytes)}},
      update_block(graph), runtime::Pass::update, "no update is pending");
  return graph;
}

Graph lower_evaluation(Graph graph, ValueId loss, const StepSettings& settings) {
  place_parameters(graph, settings);
  if (loss != runtime::kNoValue) {
    const ValueId word = add_word(graph, {loss}, true, 1);
    count_targets(graph, {}, true, 1);  // evaluation itself divides the sum over ranks
    if (settings.plan.mesh.ranks() > 1) {
      const comm::Mesh& mesh = settings.plan.mesh;
      const comm::Collective sum =
          comm::integer_sum(AgreedWord::kWords, mesh.ranks(), mesh.spanned(comm::AxisSet::all()));
      graph.nodes.push_back(runtime::collective_node(sum, word, graph.next_version(word),
                                                     static_cast<int>(graph.blocks.size()) - 1,
                                                     runtime::Pass::forward, "agree on the loss"));
    }
  }
  zero::gather_pass(graph, settings);
  runtime::hoist_gathers(graph, settings.plan.limits);
  return graph;
}

}  // namespace strata::step
