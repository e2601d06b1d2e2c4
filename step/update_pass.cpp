#include "step/update_pass.h"

#include <algorithm>
#include <map>

#include "core/check.h"
#include "core/error.h"
#include "kernels/ops/step_state.h"
#include "runtime/graph/collective_node.h"
#include "runtime/graph/node_inserter.h"
#include "runtime/graph/persistent_values.h"
#include "runtime/graph/state_names.h"
#include "step/optimizer_storage.h"
#include "zero/partition.h"

namespace strata::step {
namespace {

using kernels::Shape;
using kernels::TensorType;
using runtime::Graph;
using runtime::Pass;
using runtime::Role;
using runtime::Tier;
using runtime::ValueId;

const TensorType kControlType{DType::u8, Shape{sizeof(kernels::StepControl)}};
const TensorType kRandomType{DType::i64, Shape{2}};

/// Appends the updates of one step. Updates of this step read what it has just written; those of
/// the step before come at the start, so they read version 0 of everything.
class UpdatePass {
 public:
  enum class Of : std::uint8_t { this_step, step_before };

  UpdatePass(Graph& graph, const StepSettings& settings, Of of)
      : graph_(graph), settings_(settings), of_(of), block_(update_block(graph)) {
    control_ = latest(runtime::kStepControl, kControlType, Role::control);
    if (rounds_at_random(settings.plan))
      random_ = of == Of::this_step ? runtime::random_input(graph)
                                    : latest(runtime::kUpdateRandom, kRandomType, Role::control);
  }

  /// Updates units in the order in which the next forward pass needs them.
  void run() {
    for (std::size_t u = 0; u < graph_.units.size(); ++u) {
      if (!trains(u)) continue;
      update_unit(u);
      publish(u);
    }
  }

  [[nodiscard]] bool trains(std::size_t u) const {
    return settings_.plan.units[u].recipe.trainable;
  }

  /// Updates this rank's part of one unit.
  void update_unit(std::size_t u) {
    const runtime::ParameterUnit& unit = graph_.units[u];
    const runtime::UnitPlan& plan = settings_.plan.units[u];
    const zero::OwnedUnit o = owned(u);
    const Flat gradients = gradient(u, o), parameters = parameter(u, o);
    for (const OptimizerTile& tile : optimizer_tiles(unit, plan, o, settings_)) {
      const std::vector<State> states = tile_states(unit, plan, o, tile);
      for (const auto& [range, decay] : decay_runs(unit, tile.range))
        update_range(u, tile, states, range, decay, gradients, parameters);
    }
  }

  /// Gathers the updated shards of all ranks on every rank that keeps the whole unit.
  void publish(std::size_t u) {
    const runtime::ParameterUnit& unit = graph_.units[u];
    const runtime::UnitPlan& plan = settings_.plan.units[u];
    if (!plan.shard_optimizer || plan.shard_parameter) return;
    const zero::OwnedUnit o = owned(u);
    const ValueId updated = graph_.next_version(parameter(u, o).value);
    const ValueId published = graph_.next_version(updated);
    const comm::Partition partition =
        zero::partition_unit(unit.elements, settings_.plan.data_ranks());
    for (const zero::ElementRange& piece :
         zero::cut(unit.elements, settings_.plan.limits.gather_bucket_elements)) {
      const zero::ElementRange mine = zero::intersect(piece, {o.owned_begin, o.owned_end});
      const std::int64_t begin = mine.elements() == 0 ? 0 : mine.begin;
      comm::Collective gather;
      gather.kind = comm::CollectiveKind::all_gather;
      gather.input_type = gather.wire_type = plan.recipe.dtype;
      gather.partition = zero::slice(partition, piece.begin, piece.end);
      graph_.nodes.push_back(runtime::collective_node(
          gather,
          runtime::flat_view(graph_, updated, begin, begin + mine.elements(), unit.name + ".own"),
          runtime::flat_view(graph_, published, piece.begin, piece.end, unit.name + ".whole"),
          block_, Pass::update, "publish " + unit.name));
    }
  }

  /// Returns the root of the parameters that updates of this unit write.
  [[nodiscard]] ValueId parameter_root(std::size_t u) {
    return graph_.root_of(parameter(u, owned(u)).value);
  }

 private:
  /// Returns persistent storage in the version that the updates find.
  ValueId latest(const std::string& name, const TensorType& type, Role role,
                 Tier tier = Tier::device) {
    const ValueId root = runtime::persistent_root(graph_, name, type, role, tier);
    if (of_ == Of::step_before) return graph_.at_version(root, 0);
    std::int32_t version = 0;
    for (ValueId id = 0; id < static_cast<ValueId>(graph_.values.size()); ++id)
      if (graph_.root_of(id) == root) version = std::max(version, graph_.values[id].version);
    return graph_.at_version(root, version);
  }

  [[nodiscard]] zero::OwnedUnit owned(std::size_t u) const {
    return zero::owned_unit(graph_.units[u], settings_.plan.units[u], settings_);
  }

  /// A flat value, and the element of flat space at which it begins.
  struct Flat {
    ValueId value;
    std::int64_t begin;
  };

  /// Returns the reduced gradient. If it is not sharded, the version is that of the part that this
  /// rank reads: its own, or all.
  Flat gradient(std::size_t u, const zero::OwnedUnit& o) {
    const runtime::ParameterUnit& unit = graph_.units[u];
    const runtime::UnitPlan& plan = settings_.plan.units[u];
    const std::int64_t begin = plan.shard_gradient ? o.owned_begin : 0;
    if (of_ == Of::this_step) return {graph_.unit_gradients[u], begin};
    const std::int64_t count = plan.shard_gradient ? o.owned_end - o.owned_begin : unit.elements;
    const ValueId found = latest(runtime::accumulator_name(unit.name),
                                 {settings_.plan.gradient.accumulated, Shape{count}},
                                 Role::gradient, plan.gradient_tier);
    for (ValueId id : {found, graph_.root_of(found)})
      graph_.values[id].distribution = zero::held_by_owners(plan);
    return {found, begin};
  }

  /// Returns the parameters that this rank keeps for the next step.
  Flat parameter(std::size_t u, const zero::OwnedUnit& o) {
    return {graph_.at_version(zero::kept_parameters(graph_, u, settings_), 0),
            settings_.plan.units[u].shard_parameter ? o.owned_begin : 0};
  }

  /// One kind of state of a whole tile, before the update.
  struct State {
    std::string name;
    ValueId value;
    std::int64_t elements_per_value;
  };

  std::vector<State> tile_states(const runtime::ParameterUnit& unit, const runtime::UnitPlan& plan,
                                 const zero::OwnedUnit& o, const OptimizerTile& tile) {
    std::vector<State> states;
    for (const StateStorage& s : state_storages(unit, plan, o, tile)) {
      const ValueId root =
          runtime::persistent_root(graph_, s.name, s.storage_type, Role::optimizer, s.tier);
      graph_.values[root].distribution = zero::held_by_owners(plan);
      const TensorType type(s.dtype, Shape{tile.range.elements() / s.elements_per_value});
      std::string name = unit.name + "." + s.kind;
      states.push_back({name,
                        graph_.add_view(graph_.at_version(root, 0), s.offset_bytes, type, name),
                        s.elements_per_value});
    }
    return states;
  }

  /// Cuts a range where the weight decay changes. Gaps hold zeros and go with their neighbours.
  static std::vector<std::pair<zero::ElementRange, double>> decay_runs(
      const runtime::ParameterUnit& unit, const zero::ElementRange& range) {
    std::vector<std::pair<zero::ElementRange, double>> runs;
    if (range.elements() == 0) return runs;
    for (const runtime::Segment& segment : unit.segments) {
      const std::int64_t end =
          &segment == &unit.segments.back() ? unit.elements : (&segment + 1)->offset_elements;
      const zero::ElementRange part = zero::intersect({segment.offset_elements, end}, range);
      if (part.elements() == 0) continue;
      if (!runs.empty() && runs.back().second == segment.weight_decay)
        runs.back().first.end = part.end;
      else
        runs.emplace_back(part, segment.weight_decay);
    }
    return runs;
  }

  void update_range(std::size_t u, const OptimizerTile& tile, const std::vector<State>& kinds,
                    const zero::ElementRange& range, double decay, const Flat& gradients,
                    const Flat& parameters) {
    const std::string& name = graph_.units[u].name;
    const auto part = [&](const Flat& of, const char* what) {
      return runtime::flat_view(graph_, of.value, range.begin - of.begin, range.end - of.begin,
                                name + what);
    };
    const ValueId parameter = part(parameters, ".parameter");
    graph_.values[parameter].distribution = zero::held_by_owners(settings_.plan.units[u]);
    const runtime::UnitRecipe& recipe = settings_.plan.units[u].recipe;
    const bool has_master = keeps_master_copy(recipe);
    std::vector<ValueId> inputs;
    if (!has_master) inputs.push_back(parameter);
    for (const State& state : kinds)
      inputs.push_back(runtime::flat_view(
          graph_, state.value, (range.begin - tile.range.begin) / state.elements_per_value,
          (range.end - tile.range.begin) / state.elements_per_value, state.name));
    std::vector<ValueId> outputs;
    for (ValueId state : inputs) outputs.push_back(graph_.next_version(state));
    if (has_master) outputs.push_back(graph_.next_version(parameter));
    inputs.push_back(part(gradients, ".gradient"));
    graph_.values[inputs.back()].distribution = zero::held_by_owners(settings_.plan.units[u]);
    inputs.push_back(control_);
    kernels::Attributes attributes = settings_.optimizer;
    attributes.set("weight_decay", decay);
    if (has_master) attributes.set("parameter_dtype", static_cast<double>(recipe.dtype));
    if (recipe.optimizer.random) {
      inputs.push_back(random_);
      attributes.set("key", graph_.units[u].number);
      attributes.set("first", static_cast<double>(range.begin));
    }
    graph_.apply_into(recipe.optimizer.operation, std::move(inputs), std::move(outputs),
                      std::move(attributes), block_, Pass::update, "update " + name);
    if (settings_.plan.updates != runtime::Updates::gradient)
      graph_.nodes.back().predicate = control_;
    if (tile.tier != Tier::device) graph_.nodes.back().queue = runtime::Queue::host;
  }

  Graph& graph_;
  const StepSettings& settings_;
  Of of_;
  int block_;
  ValueId control_;
  ValueId random_ = runtime::kNoValue;
};

constexpr int kNoUnit = -1;
constexpr int kNoPlace = -1;

/// Returns, for each root, the trainable unit whose parameters it keeps for the step, or kNoUnit.
std::vector<int> units_of_roots(const Graph& graph, const StepSettings& settings) {
  std::map<std::string, int> kept;
  std::vector<int> unit_of(graph.values.size(), kNoUnit);
  for (std::size_t u = 0; u < graph.units.size(); ++u)
    if (settings.plan.units[u].recipe.trainable)
      kept[zero::parameter_storage(settings.plan.units[u])] = static_cast<int>(u);
  for (std::size_t root = 0; root < graph.values.size(); ++root) {
    const runtime::Value& value = graph.values[root];
    if (value.root != runtime::kNoValue || value.storage != runtime::Storage::persistent) continue;
    if (const auto unit = kept.find(value.name); unit != kept.end()) unit_of[root] = unit->second;
  }
  return unit_of;
}

/// Lets the forward and backward passes read the versions that the updates before them leave.
void read_updated_parameters(Graph& graph, const StepSettings& settings,
                             const std::vector<int>& unit_of) {
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id) {
    const int unit = unit_of[static_cast<std::size_t>(graph.root_of(id))];
    if (unit == kNoUnit) continue;
    const runtime::UnitPlan& plan = settings.plan.units[static_cast<std::size_t>(unit)];
    graph.values[static_cast<std::size_t>(id)].version +=
        plan.shard_optimizer && !plan.shard_parameter ? 2 : 1;
  }
}

/// Returns, for each unit, a place in the block before the first reader of its parameters: after
/// that block's gathers, so that ranks publish the update while the block computes. 0 if no block
/// comes before.
std::vector<int> places_ahead(const Graph& graph, const std::vector<int>& unit_of) {
  std::vector<int> places(graph.units.size(), kNoPlace);
  int before = 0, here = 0;  // last collective of the block before, and of this one
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const runtime::Node& node = graph.nodes[static_cast<std::size_t>(i)];
    if (i > 0) {
      const runtime::Node& last = graph.nodes[static_cast<std::size_t>(i) - 1];
      if (node.block != last.block || node.pass != last.pass) {
        before = here;
        here = i;
      }
    }
    if (node.collective) here = i + 1;
    for (ValueId in : node.inputs) {
      const int unit = unit_of[static_cast<std::size_t>(graph.root_of(in))];
      if (unit == kNoUnit) continue;
      int& place = places[static_cast<std::size_t>(unit)];
      if (place == kNoPlace) place = before;
    }
  }
  std::ranges::replace(places, kNoPlace, 0);
  return places;
}

/// A unit, and the node after which its update may come.
struct UpdatePlace {
  int node;
  std::size_t unit;
  auto operator<=>(const UpdatePlace&) const = default;
};

/// Returns places in the order in which units become ready. Ranks agree on it: nodes that only one
/// of them has (sums of its own part) come right after a node that all have.
std::vector<UpdatePlace> update_places(const Graph& graph, UpdatePass& pass) {
  std::map<ValueId, int> last_writer, last_reader;  // keyed by root
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    for (ValueId in : graph.nodes[i].inputs) last_reader[graph.root_of(in)] = i;
    for (ValueId out : graph.nodes[i].outputs) last_writer[graph.root_of(out)] = i;
  }
  std::vector<UpdatePlace> places;
  for (std::size_t u = 0; u < graph.units.size(); ++u) {
    if (!pass.trains(u)) continue;
    const int gradient = last_writer.at(graph.root_of(graph.unit_gradients[u]));
    const auto reader = last_reader.find(pass.parameter_root(u));
    places.push_back(
        {reader == last_reader.end() ? gradient : std::max(gradient, reader->second), u});
  }
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

void update_pass(runtime::Graph& graph, const StepSettings& settings) {
  UpdatePass(graph, settings, UpdatePass::Of::this_step).run();
}

void late_update_pass(runtime::Graph& graph, const StepSettings& settings) {
  const std::vector<int> unit_of = units_of_roots(graph, settings);
  read_updated_parameters(graph, settings, unit_of);
  // The places are the same on all ranks, so the collectives among these nodes have one order.
  const std::vector<int> places = places_ahead(graph, unit_of);
  const std::size_t others = graph.nodes.size();
  UpdatePass pass(graph, settings, UpdatePass::Of::step_before);
  runtime::NodeInserter inserter;
  for (std::size_t u = 0; u < graph.units.size(); ++u) {
    if (!pass.trains(u)) continue;
    pass.update_unit(u);
    pass.publish(u);
    for (std::size_t i = others; i < graph.nodes.size(); ++i)
      inserter.before(places[u], std::move(graph.nodes[i]));
    graph.nodes.resize(others);
  }
  inserter.apply(graph);
}

void early_update_pass(runtime::Graph& graph, const StepSettings& settings) {
  UpdatePass pass(graph, settings, UpdatePass::Of::this_step);
  const std::vector<UpdatePlace> places = update_places(graph, pass);
  const std::size_t others = graph.nodes.size();
  runtime::NodeInserter inserter;
  const auto move_after = [&](int place) {
    for (std::size_t i = others; i < graph.nodes.size(); ++i)
      inserter.after(place, std::move(graph.nodes[i]));
    graph.nodes.resize(others);
  };
  for (std::size_t k = 0; k < places.size(); ++k) {
    pass.update_unit(places[k].unit);
    // Collectives keep their order. Publishing one unit later keeps a slow update from holding up a
    // reduction that the next update waits for.
    if (k > 0) pass.publish(places[k - 1].unit);
    if (k + 1 == places.size()) pass.publish(places[k].unit);
    move_after(places[k].node);
  }
  inserter.apply(graph);
}

bool rounds_at_random(const runtime::Plan& plan) {
  return std::ranges::any_of(plan.units, [](const runtime::UnitPlan& unit) {
    return unit.recipe.trainable && unit.recipe.optimizer.random;
  });
}

int update_block(Graph& graph) {
  const auto at = std::find(graph.blocks.begin(), graph.blocks.end(), "update");
  if (at != graph.blocks.end()) return static_cast<int>(at - graph.blocks.begin());
  return graph.add_block("update");
}

}  // namespace strata::step
