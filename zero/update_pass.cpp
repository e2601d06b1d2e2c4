#include <algorithm>
#include <cstddef>

#include "kernels/step_state.h"
#include "runtime/collective_node.h"
#include "runtime/state_names.h"
#include "zero/partition.h"
#include "zero/passes.h"

namespace strata::zero {
namespace {

using kernels::AgreedWord;
using kernels::Shape;
using runtime::Graph;
using runtime::Node;
using runtime::Pass;
using runtime::Role;
using runtime::ValueId;

class UpdatePass {
 public:
  UpdatePass(Graph& graph, const StepSettings& settings, ValueId word)
      : graph_(graph), settings_(settings), word_(word) {
    block_ = graph_.add_block("update");
  }

  void run() {
    const int units = static_cast<int>(graph_.units.size());
    for (int u = units - 1; u >= 0; --u)  // in the order in which the backward pass ends them
      if (graph_.units[u].trainable) add_norm(u);
    agree();
    control();
    for (int u = 0; u < units; ++u)  // in the order in which the next forward pass needs them
      if (graph_.units[u].trainable) update_unit(u);
  }

 private:
  [[nodiscard]] OwnedUnit owned(int unit) const {
    return owned_unit(graph_.units[unit], settings_.plan.units[unit], settings_.plan.world,
                      settings_.rank);
  }

  /// The reduced gradient and where in flat space its storage begins. Where it is not sharded the
  /// version is that of the part that this rank reads: its own, or all.
  std::pair<ValueId, std::int64_t> gradient(int unit) {
    const bool sharded = settings_.plan.units[unit].shard_gradient;
    return {graph_.unit_gradients[unit], sharded ? owned(unit).owned_begin : 0};
  }

  /// Each element counts on one rank: its owner's.
  void add_norm(int unit) {
    const OwnedUnit o = owned(unit);
    if (o.owned_begin == o.owned_end) return;
    const auto [values, begin] = gradient(unit);
    const ValueId own =
        flat_view(graph_, values, o.owned_begin - begin, o.owned_end - begin, "own gradient");
    const ValueId next = graph_.next_version(word_);
    add("norm_squares", {word_, own}, {next}, {}, "norm " + graph_.units[unit].name);
    word_ = next;
  }

  void agree() {
    if (settings_.plan.world == 1) return;
    const comm::Collective sum = comm::integer_sum(AgreedWord::kWords, settings_.plan.world);
    const ValueId next = graph_.next_version(word_);
    graph_.nodes.push_back(runtime::collective_node(sum, word_, next, block_, Pass::update,
                                                    "agree on norm and flags"));
    word_ = next;
  }

  void control() {
    const auto bytes = [](std::size_t n) {
      return kernels::TensorType{DType::u8, Shape{static_cast<std::int64_t>(n)}};
    };
    const ValueId step = persistent_value(graph_, runtime::kStepState,
                                          bytes(sizeof(kernels::StepState)), Role::control);
    control_ = graph_.next_version(persistent_value(
        graph_, runtime::kStepControl, bytes(sizeof(kernels::StepControl)), Role::control));
    const ValueId metrics = persistent_value(graph_, runtime::kStepMetrics,
                                             bytes(sizeof(kernels::StepMetrics)), Role::control);
    kernels::Attributes attributes = settings_.control;
    attributes.set("world", settings_.plan.world);
    const ValueId made = graph_.next_version(metrics);
    add("step_control", {step, word_}, {graph_.next_version(step), control_, made},
        std::move(attributes), "step_control");
    publish_metrics(made);
  }

  /// Two slots, so that the host may read step t's metrics while step t + 1 ends.
  void publish_metrics(ValueId metrics) {
    const std::int64_t size = sizeof(kernels::StepMetrics);
    const ValueId slots =
        persistent_value(graph_, runtime::kHostMetrics, {DType::u8, Shape{2 * size}}, Role::control,
                         runtime::Tier::pinned);
    for (int slot = 0; slot < 2; ++slot) {
      const std::int64_t flag =
          offsetof(kernels::StepControl, slot) + slot * sizeof(kernels::StepControl::slot[0]);
      add("copy", {metrics},
          {graph_.next_version(
              graph_.add_view(slots, slot * size, graph_.type(metrics), "metrics"))},
          {}, "copy out metrics");
      graph_.nodes.back().predicate =
          graph_.add_view(control_, flag, {DType::u8, Shape{sizeof(std::uint32_t)}}, "slot");
    }
  }

  void update_unit(int unit) {
    const runtime::ParameterUnit& u = graph_.units[unit];
    const runtime::UnitPlan& plan = settings_.plan.units[unit];
    const OwnedUnit o = owned(unit);
    const auto [gradients, gradient_begin] = gradient(unit);
    for (const Extent& tile : cut(u.elements, settings_.plan.limits.tile_elements))
      for (const auto& [extent, decay] :
           decay_runs(u, intersect(tile, {o.optimizer_begin, o.optimizer_end})))
        update_range(unit, o, extent, decay, gradients, gradient_begin);
    if (plan.shard_optimizer && !plan.shard_parameter) publish(unit, o);
  }

  /// Cuts an extent where the weight decay changes. Gaps hold zeros and take their neighbour's.
  static std::vector<std::pair<Extent, double>> decay_runs(const runtime::ParameterUnit& unit,
                                                           const Extent& extent) {
    std::vector<std::pair<Extent, double>> runs;
    if (extent.elements() == 0) return runs;
    for (const runtime::Segment& segment : unit.segments) {
      const std::int64_t end =
          &segment == &unit.segments.back() ? unit.elements : (&segment + 1)->offset_elements;
      const Extent part = intersect({segment.offset_elements, end}, extent);
      if (part.elements() == 0) continue;
      if (!runs.empty() && runs.back().second == segment.weight_decay)
        runs.back().first.end = part.end;
      else
        runs.emplace_back(part, segment.weight_decay);
    }
    return runs;
  }

  void update_range(int unit, const OwnedUnit& o, const Extent& extent, double decay,
                    ValueId gradients, std::int64_t gradient_begin) {
    const std::string& name = graph_.units[unit].name;
    const std::int64_t held = o.optimizer_end - o.optimizer_begin;
    const std::int64_t begin = extent.begin - o.optimizer_begin,
                       end = extent.end - o.optimizer_begin;
    const auto [parameters, parameter_begin] = parameter_storage(unit, o);
    const ValueId parameter = flat_view(graph_, parameters, extent.begin - parameter_begin,
                                        extent.end - parameter_begin, name + ".parameter");
    const std::vector<OptimizerState> kinds = optimizer_states(settings_);
    const bool has_master = !kinds.empty() && kinds[0].kind == std::string_view("master");
    std::vector<ValueId> states;
    if (!has_master) states.push_back(parameter);
    for (const OptimizerState& kind : kinds) {
      const ValueId storage =
          persistent_value(graph_, kind.storage(name), {kind.dtype, Shape{held}}, Role::optimizer);
      states.push_back(flat_view(graph_, storage, begin, end, name + "." + kind.kind));
    }
    std::vector<ValueId> inputs = states, outputs;
    for (ValueId s : states) outputs.push_back(graph_.next_version(s));
    if (has_master) outputs.push_back(graph_.next_version(parameter));
    inputs.push_back(flat_view(graph_, gradients, extent.begin - gradient_begin,
                               extent.end - gradient_begin, name + ".gradient"));
    inputs.push_back(control_);
    kernels::Attributes attributes = settings_.optimizer.attributes;
    attributes.set("weight_decay", decay);
    if (has_master) attributes.set("parameter_dtype", static_cast<double>(settings_.dtype));
    if (!settings_.optimizer.keeps_master) {
      inputs.push_back(random_input());
      attributes.set("key", unit);
      attributes.set("first", static_cast<double>(extent.begin));
    }
    add(settings_.optimizer.operation, std::move(inputs), std::move(outputs), std::move(attributes),
        "update " + name);
    graph_.nodes.back().predicate = control_;
  }

  /// Seed and step, an input of every training Graph.
  [[nodiscard]] ValueId random_input() const {
    for (std::size_t i = 0; i < graph_.values.size(); ++i)
      if (graph_.values[i].role == Role::input && graph_.values[i].name == "rng")
        return static_cast<ValueId>(i);
    STRATA_CHECK(false, "the Graph has no random input");
  }

  /// Where this rank keeps the parameters that the next step reads, and where they begin.
  std::pair<ValueId, std::int64_t> parameter_storage(int unit, const OwnedUnit& o) {
    const runtime::ParameterUnit& u = graph_.units[unit];
    if (settings_.plan.units[unit].shard_parameter)
      return {
          persistent_value(graph_, runtime::parameter_shard_name(u.name),
                           {settings_.dtype, Shape{o.owned_end - o.owned_begin}}, Role::parameter),
          o.owned_begin};
    return {graph_.unit_values[unit], 0};
  }

  /// Every rank's updated shard to every rank that keeps the whole unit.
  void publish(int unit, const OwnedUnit& o) {
    const runtime::ParameterUnit& u = graph_.units[unit];
    const ValueId updated = graph_.next_version(graph_.unit_values[unit]);
    const ValueId published = graph_.next_version(updated);
    for (const Extent& piece : cut(u.elements, settings_.plan.limits.gather_bucket_elements)) {
      const Extent mine = intersect(piece, {o.owned_begin, o.owned_end});
      const std::int64_t begin = mine.elements() == 0 ? 0 : mine.begin;
      comm::Collective gather;
      gather.kind = comm::CollectiveKind::all_gather;
      gather.input_type = gather.wire_type = settings_.dtype;
      gather.partition = slice(o.partition, piece.begin, piece.end);
      graph_.nodes.push_back(runtime::collective_node(
          gather, flat_view(graph_, updated, begin, begin + mine.elements(), u.name + ".own"),
          flat_view(graph_, published, piece.begin, piece.end, u.name + ".whole"), block_,
          Pass::update, "publish " + u.name));
    }
  }

  void add(std::string_view operation, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
           kernels::Attributes attributes, std::string label) {
    graph_.apply_into(operation, std::move(inputs), std::move(outputs), std::move(attributes),
                      block_, Pass::update, std::move(label));
  }

  Graph& graph_;
  const StepSettings& settings_;
  int block_ = 0;
  ValueId word_;                         // as written last
  ValueId control_ = runtime::kNoValue;  // as step_control leaves it
};

}  // namespace

void update_pass(runtime::Graph& graph, const StepSettings& settings, ValueId word) {
  UpdatePass(graph, settings, word).run();
}

}  // namespace strata::zero
