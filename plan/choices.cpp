#include "plan/choices.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "plan/layers.h"
#include "plan/saved_layers.h"
#include "runtime/passes/autodiff.h"
#include "runtime/passes/saved_values.h"
#include "zero/partition.h"

namespace strata::plan {
namespace {

using runtime::Tier;
using runtime::Updates;

/// The setting that says what becomes of saved values, for messages.
constexpr std::string_view kActionsName = "strata.actions (--actions)";

/// Decides where each kind of state of each unit lives.
void place_units(runtime::Plan& plan, const Choices& choices,
                 const std::vector<runtime::ParameterUnit>& units) {
  std::int64_t in_host_memory = choices.parameter_host_elements;
  for (std::size_t u = 0; u < units.size(); ++u) {
    runtime::UnitPlan& unit = plan.units[u];
    if (choices.parameters != Home::device &&
        units[u].elements > choices.sharding.persistence_threshold_elements) {
      const std::int64_t mine =
          zero::largest_shard(units[u].elements, unit.shard_parameter ? plan.data_ranks() : 1);
      const bool stays = choices.parameters == Home::host || mine <= in_host_memory;
      unit.parameter_tier = stays ? Tier::pinned : Tier::disk;
      if (stays) in_host_memory -= std::min(mine, in_host_memory);
    }
    if (choices.optimizer == Home::device) continue;
    unit.optimizer_tier = choices.optimizer == Home::disk ? Tier::disk : Tier::pageable;
    // Cells are counted on the rank with the largest part, so that all ranks plan alike.
    const std::int64_t cells =
        zero::largest_shard(units[u].elements, unit.shard_optimizer ? plan.data_ranks() : 1) /
        runtime::kCellElements;
    // Parameters on the disk move as a whole, so the whole unit is updated on the same side.
    if (unit.parameter_tier != Tier::disk)
      unit.optimizer_device_elements =
          std::llround((1 - choices.optimizer_part) * static_cast<double>(cells)) *
          runtime::kCellElements;
    // Several micro-steps one by one move the sum over the link in each of them.
    if (choices.keeps_sums_away()) unit.gradient_tier = Tier::pinned;
  }
}

/// Returns the actions on all values that a forward Graph's blocks save: recomputing runs
/// of layers, or norms and activation functions alone, and sending values away from the device. All
/// else is kept.
std::vector<runtime::BlockActions> plan_saved(const Choices& choices, runtime::Graph graph,
                                              DType produced) {
  const std::vector<int> layers = layers_of(graph.blocks);
  if (layers.empty()) return {};
  runtime::differentiate(graph, {produced});
  if (!choices.actions.empty()) {
    static_cast<void>(runtime::saved_actions(graph, choices.actions, kActionsName));
    return choices.actions;
  }
  runtime::SavedChoices saved(graph);
  if (choices.again == Again::everything && choices.again_part < 1) {
    saved.recompute_part(layers.front(), layers.back(), choices.again_part);
  } else if (choices.again == Again::everything) {
    const auto total = static_cast<std::int64_t>(layers.size());
    const std::int64_t asked = choices.layer_runs;
    const std::int64_t runs = asked <= 0 ? total : std::min(asked, total);
    for (std::int64_t r = 0; r < runs; ++r)
      saved.recompute_blocks(layers[static_cast<std::size_t>(r * total / runs)],
                             layers[static_cast<std::size_t>((r + 1) * total / runs - 1)]);
  } else if (choices.again == Again::norms) {
    saved.recompute_cheap(layers.front(), layers.back());
  }
  if (choices.activations != Home::device)
    saved.send(
        layers.front(), layers.back(),
        choices.activations == Home::disk ? runtime::SavedAction::disk : runtime::SavedAction::host,
        kLeastLeavingBytes);
  return saved.actions();
}

}  // namespace

bool Choices::uses(Home home) const {
  const auto sent = home == Home::disk ? runtime::SavedAction::disk : runtime::SavedAction::host;
  return optimizer == home || parameters == home || activations == home ||
         runtime::has_action(actions, sent);
}

bool give_equal_bits(const Choices& a, const Choices& b, int ranks) {
  const auto reduces_each = [&](const Choices& choices) {
    return ranks > 1 && choices.micro_steps > 1 && !choices.layer_major &&
           zero::shards_gradients(choices.sharding);
  };
  return a.micro_batch == b.micro_batch && reduces_each(a) == reduces_each(b);
}

runtime::Plan with_choices(runtime::Plan frame, const Choices& choices,
                           const std::vector<runtime::ParameterUnit>& units) {
  runtime::Plan plan = std::move(frame);
  plan.shape.batch = choices.micro_batch;
  plan.micro_steps = choices.micro_steps;
  plan.units = zero::plan_units(units, choices.sharding, plan.data_ranks(), plan.virtual_ranks);
  for (runtime::UnitPlan& unit : plan.units) unit.recipe = choices.recipe;
  place_units(plan, choices, units);
  // No update is worth running beside the next forward pass without offload.
  const bool on_device = choices.optimizer == Home::device;
  plan.updates =
      on_device && choices.updates == Updates::next_step ? Updates::step_end : choices.updates;
  plan.order = choices.layer_major && plan.micro_steps > 1 ? runtime::MicroStepOrder::by_layer
                                                           : runtime::MicroStepOrder::one_by_one;
  return plan;
}

runtime::Plan with_choices(runtime::Plan frame, const Choices& choices,
                           const compile::ModelFunction& build) {
  frame.shape.batch = choices.micro_batch;
  runtime::Graph graph = build(frame.shape, compile::ModelUse::train).graph;
  runtime::Plan plan = with_choices(std::move(frame), choices, graph.units);
  plan.saved = plan_saved(choices, std::move(graph), plan.gradient.produced);
  return plan;
}

}  // namespace strata::plan
