#include "zero/step.h"

#include <algorithm>

#include "core/check.h"
#include "kernels/step_state.h"
#include "runtime/collective_node.h"
#include "runtime/node_inserter.h"
#include "runtime/order.h"
#include "runtime/state_names.h"
#include "zero/partition.h"
#include "zero/passes.h"
#include "zero/policy.h"

namespace strata::zero {
namespace {

using kernels::AgreedWord;
using kernels::Shape;
using kernels::TensorType;
using runtime::Graph;
using runtime::Role;
using runtime::Tier;
using runtime::ValueId;

const TensorType kWordType{DType::i64, Shape{AgreedWord::kWords}};

/// The host's word (flags) starts the step's; every micro-step adds its loss. Returns the word with
/// this one's loss in it.
ValueId add_word(Graph& graph, ValueId loss, bool begins) {
  ValueId word = persistent_value(graph, runtime::kAgreedWord, kWordType, Role::control);
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
    const ValueId host =
        persistent_value(graph, runtime::kHostWord, kWordType, Role::input, Tier::pinned);
    inserter.before(0, make("copy", {host}));
  }
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const auto& outputs = graph.nodes[i].outputs;
    if (std::find(outputs.begin(), outputs.end(), loss) == outputs.end()) continue;
    runtime::Node node = make("add_loss", {word, loss});
    node.block = graph.nodes[i].block;
    inserter.after(i, std::move(node));
  }
  inserter.apply(graph);
  return word;
}

}  // namespace

std::string_view name_of(Position position) {
  constexpr std::string_view kNames[] = {"only", "first", "middle", "last"};
  return kNames[static_cast<int>(position)];
}

std::vector<OptimizerState> optimizer_states(const StepSettings& settings) {
  const OptimizerSettings& optimizer = settings.optimizer;
  std::vector<OptimizerState> states;
  if (settings.dtype != DType::f32 && optimizer.keeps_master)
    states.push_back({"master", runtime::master_name, DType::f32});
  if (optimizer.moments > 0)
    states.push_back({"moment1", runtime::moment1_name, optimizer.moment_dtype});
  if (optimizer.moments > 1)
    states.push_back({"moment2", runtime::moment2_name, optimizer.moment_dtype});
  return states;
}

OwnedUnit owned_unit(const runtime::ParameterUnit& unit, const runtime::UnitPlan& plan, int world,
                     int rank) {
  OwnedUnit owned;
  owned.partition = partition_unit(unit.elements, world);
  owned.owned_begin = owned.partition.begin(rank);
  owned.owned_end = owned.owned_begin + owned.partition.count(rank);
  owned.optimizer_begin = plan.shard_optimizer ? owned.owned_begin : 0;
  owned.optimizer_end = plan.shard_optimizer ? owned.owned_end : unit.elements;
  return owned;
}

ValueId persistent_value(Graph& graph, const std::string& name, const TensorType& type, Role role,
                         Tier tier) {
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const runtime::Value& known = graph.values[i];
    if (known.root != runtime::kNoValue || known.name != name ||
        known.storage != runtime::Storage::persistent)
      continue;
    STRATA_CHECK(known.type == type, name, known.type.to_string(), type.to_string());
    STRATA_CHECK(known.version == 0, name, "is written from the start; read its version instead");
    return static_cast<ValueId>(i);
  }
  runtime::Value value;
  value.name = name;
  value.type = type;
  value.storage = runtime::Storage::persistent;
  value.role = role;
  value.tier = tier;
  return graph.add_value(std::move(value));
}

ValueId flat_view(Graph& graph, ValueId of, std::int64_t begin, std::int64_t end,
                  std::string name) {
  const DType dtype = graph.type(of).dtype;
  return graph.add_view(of, begin * size_of(dtype), TensorType(dtype, Shape{end - begin}),
                        std::move(name));
}

void declare_state(runtime::PersistentLayout& layout,
                   const std::vector<runtime::ParameterUnit>& units, const StepSettings& settings) {
  check_plan(settings.plan, units);
  const auto flat = [&](const std::string& name, DType dtype, std::int64_t elements, Role role) {
    layout.add(name, TensorType(dtype, Shape{elements}), runtime::Tier::device, role);
  };
  for (std::size_t u = 0; u < units.size(); ++u) {
    const runtime::ParameterUnit& unit = units[u];
    const runtime::UnitPlan& plan = settings.plan.units[u];
    const OwnedUnit o = owned_unit(unit, plan, settings.plan.world, settings.rank);
    const std::int64_t shard = o.owned_end - o.owned_begin;
    const std::int64_t held = o.optimizer_end - o.optimizer_begin;
    if (plan.shard_parameter)
      flat(runtime::parameter_shard_name(unit.name), settings.dtype, shard, Role::parameter);
    else
      flat(runtime::parameter_name(unit.name), settings.dtype, unit.elements, Role::parameter);
    if (!unit.trainable) continue;
    flat(runtime::accumulator_name(unit.name), settings.plan.gradient.accumulated,
         plan.shard_gradient ? shard : unit.elements, Role::gradient);
    for (const OptimizerState& state : optimizer_states(settings))
      flat(state.storage(unit.name), state.dtype, held, Role::optimizer);
  }
}

Graph lower_micro_step(Graph graph, ValueId loss, const StepSettings& settings, Position position) {
  check_plan(settings.plan, graph.units);
  reduction_pass(graph, settings, position);
  const ValueId word = add_word(graph, loss, begins_step(position));
  if (ends_step(position)) update_pass(graph, settings, word);
  gather_pass(graph, settings);
  runtime::hoist_gathers(graph, settings.plan.limits);
  return graph;
}

Graph lower_evaluation(Graph graph, ValueId loss, const StepSettings& settings) {
  check_plan(settings.plan, graph.units);
  if (loss != runtime::kNoValue) {
    const ValueId word = add_word(graph, loss, true);
    if (settings.plan.world > 1) {
      const comm::Collective sum = comm::integer_sum(AgreedWord::kWords, settings.plan.world);
      graph.nodes.push_back(runtime::collective_node(sum, word, graph.next_version(word),
                                                     static_cast<int>(graph.blocks.size()) - 1,
                                                     runtime::Pass::forward, "agree on the loss"));
    }
  }
  gather_pass(graph, settings);
  runtime::hoist_gathers(graph, settings.plan.limits);
  return graph;
}

}  // namespace strata::zero
