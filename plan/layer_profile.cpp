#include "plan/layer_profile.h"

#include <algorithm>
#include <map>
#include <utility>

#include "plan/layers.h"
#include "runtime/passes/autodiff.h"
#include "runtime/passes/recompute.h"
#include "runtime/passes/saved_values.h"
#include "runtime/program/node_demand.h"

namespace strata::plan {
namespace {

using runtime::Graph;
using runtime::Pass;
using runtime::SavedAction;

constexpr double kSecondsPerNs = 1e-9;

class Profiler {
 public:
  Profiler(const compile::TrainingModel& model, const machine::Machine& machine,
           const comm::MeshSeat& where, const compile::StepPrograms& programs)
      : model_(model), machine_(machine), where_(where), programs_(programs) {}

  std::vector<LayerProfile> run() {
    const runtime::Plan& plan = programs_.settings.plan;
    graph_ = model_.build(plan.shape, compile::ModelUse::train).graph;
    for (const std::string& block : graph_.blocks) row(block);
    std::vector<bool> frozen;
    for (const runtime::UnitPlan& unit : plan.units) frozen.push_back(!unit.recipe.trainable);
    runtime::differentiate(graph_, {plan.gradient.produced, std::move(frozen)});
    add_state();
    add_steps();
    add_saved(runtime::saved_actions(graph_, plan.saved));
    add_possible();
    return std::move(rows_);
  }

 private:
  LayerProfile& row(const std::string& block) {
    const auto [at, fresh] = index_.try_emplace(block, rows_.size());
    if (fresh) rows_.push_back({.block = block});
    return rows_[at->second];
  }
  LayerProfile& row(int block) { return row(graph_.blocks[static_cast<std::size_t>(block)]); }

  /// Names are KIND/UNIT or KIND/UNIT/FIRST (runtime/graph/state_names.h).
  LayerProfile* row_of_state(const std::string& name) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos) return nullptr;
    const std::string unit = name.substr(slash + 1, name.find('/', slash + 1) - slash - 1);
    const auto at = std::ranges::find(programs_.units, unit, &runtime::ParameterUnit::name);
    return at == programs_.units.end() ? nullptr : &row(at->block);
  }

  void add_state() {
    for (const runtime::PersistentValue& value : programs_.persistent.values()) {
      LayerProfile* layer = row_of_state(value.name);
      if (layer == nullptr) continue;
      const std::int64_t bytes = value.type.span_bytes();
      if (value.role == runtime::Role::parameter) layer->parameter_bytes += bytes;
      if (value.role == runtime::Role::gradient) layer->gradient_bytes += bytes;
      if (value.role == runtime::Role::optimizer) layer->optimizer_bytes += bytes;
    }
  }

  void add_steps() {
    for (const auto& [key, program] : programs_.programs) {
      if (!key.is_train()) continue;
      const double runs = zero::runs_per_step(programs_.settings.plan, key.micro_step);
      for (const runtime::Instruction& in : program.instructions)
        add_instruction(row(program.blocks[static_cast<std::size_t>(in.block)]), in, runs);
    }
  }

  void add_instruction(LayerProfile& layer, const runtime::Instruction& in, double runs) const {
    const double seconds = runs * seconds_of(in.demand);
    layer.flops += runs * in.demand.flops;
    if (in.queue != runtime::Queue::compute && in.queue != runtime::Queue::host)
      layer.moving_seconds += seconds;
    else if (in.pass == Pass::forward)
      layer.forward_seconds += seconds;
    else if (in.pass == Pass::backward)
      layer.backward_seconds += seconds;
    else
      layer.update_seconds += seconds;
  }

  [[nodiscard]] double seconds_of(const machine::Demand& demand) const {
    return kSecondsPerNs * static_cast<double>(machine::foreseen_ns(machine_, demand));
  }

  /// Micro-batches that a step of this rank computes.
  [[nodiscard]] double micro_batches() const {
    const runtime::Plan& plan = programs_.settings.plan;
    return static_cast<double>(plan.micro_steps) * plan.leaves_per_rank();
  }

  void add_saved(const std::map<runtime::ValueId, SavedAction>& actions) {
    for (const runtime::SavedValue& value : runtime::list_saved_values(graph_)) {
      const auto action = actions.find(value.root);
      const SavedAction becomes = action == actions.end() ? SavedAction::keep : action->second;
      row(value.block).saved_bytes[static_cast<std::size_t>(becomes)] += value.bytes;
    }
    for (const auto& [block, ns] : recompute_ns(actions))
      row(block).recompute_seconds = seconds_per_step(ns);
  }

  [[nodiscard]] double seconds_per_step(std::int64_t micro_batch_ns) const {
    return kSecondsPerNs * static_cast<double>(micro_batch_ns) * micro_batches();
  }

  /// Returns the time that making values again takes in one micro-batch, by the block whose values
  /// they are.
  [[nodiscard]] std::map<int, std::int64_t> recompute_ns(
      const std::map<runtime::ValueId, SavedAction>& actions) const {
    Graph graph = graph_;
    runtime::recompute(graph, actions);
    std::map<int, std::int64_t> ns;
    const auto add = [&](const Graph& of, std::int64_t sign) {
      for (const runtime::Node& node : of.nodes)
        if (node.pass == Pass::backward)
          ns[node.block] +=
              sign * machine::foreseen_ns(machine_, runtime::demand_of(of, node, where_));
    };
    add(graph, 1);
    add(graph_, -1);
    return ns;
  }

  /// Adds what each layer could make again, all layers alike.
  void add_possible() {
    const std::vector<int> layers = layers_of(graph_.blocks);
    runtime::SavedChoices choices(graph_);
    for (const int layer : layers) choices.recompute_blocks(layer, layer);
    const auto actions = runtime::saved_actions(graph_, choices.actions());
    const auto ns = recompute_ns(actions);
    for (const runtime::SavedValue& value : runtime::list_saved_values(graph_))
      if (const auto at = actions.find(value.root);
          at != actions.end() && at->second == SavedAction::recompute)
        row(value.block).recomputable_bytes += value.bytes;
    for (const int layer : layers)
      if (const auto at = ns.find(layer); at != ns.end())
        row(layer).recomputable_seconds = seconds_per_step(at->second);
  }

  const compile::TrainingModel& model_;
  const machine::Machine& machine_;
  const comm::MeshSeat& where_;
  const compile::StepPrograms& programs_;
  Graph graph_;  ///< differentiated, and nothing else
  std::vector<LayerProfile> rows_;
  std::map<std::string, std::size_t> index_;
};

}  // namespace

double LayerProfile::freed_bytes_per_ms() const {
  return recompute_seconds > 0
             ? static_cast<double>(saved(SavedAction::recompute)) / (1e3 * recompute_seconds)
             : 0;
}

std::vector<LayerProfile> profile_layers(const compile::TrainingModel& model,
                                         const machine::Machine& machine,
                                         const comm::MeshSeat& where,
                                         const compile::StepPrograms& programs) {
  return Profiler(model, machine, where, programs).run();
}

}  // namespace strata::plan
