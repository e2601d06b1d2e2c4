#include <algorithm>
#include <map>

#include "runtime/collective_node.h"
#include "runtime/node_inserter.h"
#include "runtime/state_names.h"
#include "zero/partition.h"
#include "zero/passes.h"

namespace strata::zero {
namespace {

using runtime::Graph;
using runtime::Node;
using runtime::ValueId;

/// Handles one unit's gradient. `at` is the list position of its last writer; everything is
/// inserted behind it, so a reduction can run while the backward pass goes on.
class UnitReduction {
 public:
  UnitReduction(Graph& graph, runtime::NodeInserter& inserter, const StepSettings& settings,
                Position position, int unit, int at)
      : graph_(graph),
        inserter_(inserter),
        settings_(settings),
        position_(position),
        unit_(graph.units[unit]),
        plan_(settings.plan.units[unit]),
        gradient_(graph.unit_gradients[unit]),
        owned_(owned_unit(unit_, plan_, settings.plan.world, settings.rank)),
        at_(at) {}

  /// The gradient that the update is to read: the accumulator in its last version. A rank whose
  /// part is empty may get its empty sum instead, so that on every rank the last writer stands
  /// behind the reduction.
  ValueId run() {
    return plan_.shard_gradient ? reduce_then_accumulate() : accumulate_then_reduce();
  }

 private:
  [[nodiscard]] DType produced() const { return graph_.type(gradient_).dtype; }
  [[nodiscard]] DType accumulated() const { return settings_.plan.gradient.accumulated; }

  /// Sharded gradients: every micro-step is reduced; only the own piece is kept.
  ValueId reduce_then_accumulate() {
    const std::int64_t mine = owned_.owned_end - owned_.owned_begin;
    const ValueId before = accumulator(mine), sum = graph_.next_version(before);
    if (begins_step(position_) && accumulated() == DType::f32) {
      reduce_scatter(gradient_, sum, owned_.owned_begin);
      return sum;
    }
    const ValueId reduced = reduce_apart(gradient_);
    if (mine == 0) return reduced;
    take(reduced, before, sum);
    return sum;
  }

  /// Whole gradients: micro-steps add up locally, the step's sum is reduced once.
  ValueId accumulate_then_reduce() {
    ValueId sum = gradient_;
    if (begins_step(position_) && produced() == accumulated()) {
      // Backward operations write the accumulator itself.
      const ValueId root = graph_.root_of(gradient_);
      graph_.make_persistent(root, runtime::accumulator_name(unit_.name));
      graph_.set_home(root, plan_.gradient_tier);
    } else {
      const ValueId before = accumulator(unit_.elements);
      sum = graph_.next_version(before);
      take(gradient_, before, sum);
    }
    if (!ends_step(position_) || !changes_anything()) return sum;
    const ValueId reduced = graph_.next_version(sum);  // of the own part; the rest stays as it is
    ValueId own = reduced;
    if (accumulated() == DType::f32)
      reduce_scatter(sum, reduced, 0);
    else
      own = reduce_and_round(sum, reduced);
    return plan_.shard_optimizer ? own : gather_sums(reduced);
  }

  /// A world of one still rounds to the wire type, except where rounding is the identity.
  [[nodiscard]] bool changes_anything() const {
    const DType reduced = settings_.plan.gradient.reduced;
    return settings_.plan.world > 1 || (reduced != DType::f32 && reduced != accumulated());
  }

  /// The first micro-step's part becomes `sum`, later ones are added to what was there `before`.
  void take(ValueId part, ValueId before, ValueId sum) {
    if (begins_step(position_))
      round_into(part, sum);
    else
      insert("accumulate", {before, part}, {sum}, {});
  }

  void round_into(ValueId from, ValueId to) {
    insert("convert", {from}, {to}, {{"dtype", static_cast<double>(accumulated())}});
  }

  /// Own piece of the sum over ranks, in fp32 storage of its own.
  ValueId reduce_apart(ValueId source) {
    runtime::Value part;
    part.name = "reduced/" + unit_.name;
    part.type = {DType::f32, kernels::Shape{owned_.owned_end - owned_.owned_begin}};
    part.role = runtime::Role::gradient;
    const ValueId reduced = graph_.add_value(std::move(part));
    reduce_scatter(source, reduced, owned_.owned_begin);
    return reduced;
  }

  /// Sums are fp32: they cannot lie where 16-bit contributions lay before they are rounded.
  ValueId reduce_and_round(ValueId contribution, ValueId sum) {
    const ValueId reduced = reduce_apart(contribution);
    if (owned_.owned_begin == owned_.owned_end) return reduced;
    round_into(reduced, flat_view(graph_, sum, owned_.owned_begin, owned_.owned_end, "own sum"));
    return sum;
  }

  /// Own piece of the sum over ranks; `target` holds elements from `target_begin` of flat space.
  void reduce_scatter(ValueId source, ValueId target, std::int64_t target_begin) {
    for (const Extent& piece : cut(unit_.elements, settings_.plan.limits.reduce_bucket_elements)) {
      const Extent mine = intersect(piece, {owned_.owned_begin, owned_.owned_end});
      const std::int64_t begin = mine.elements() == 0 ? 0 : mine.begin - target_begin;
      comm::Collective reduce = collective(comm::CollectiveKind::reduce_scatter, piece);
      reduce.input_type = graph_.type(source).dtype;
      reduce.wire_type = settings_.plan.gradient.reduced;
      reduce.scale = 1.0f / static_cast<float>(settings_.plan.world);
      insert_collective(reduce, flat_view(graph_, source, piece.begin, piece.end, "contribution"),
                        flat_view(graph_, target, begin, begin + mine.elements(), "own sum"),
                        "reduce " + unit_.name);
    }
  }

  ValueId gather_sums(ValueId reduced) {
    const ValueId all = graph_.next_version(reduced);
    for (const Extent& piece : cut(unit_.elements, settings_.plan.limits.gather_bucket_elements)) {
      const Extent mine = intersect(piece, {owned_.owned_begin, owned_.owned_end});
      const std::int64_t begin = mine.elements() == 0 ? 0 : mine.begin;
      comm::Collective gather = collective(comm::CollectiveKind::all_gather, piece);
      gather.input_type = gather.wire_type = accumulated();
      insert_collective(
          gather, flat_view(graph_, reduced, begin, begin + mine.elements(), "own sum"),
          flat_view(graph_, all, piece.begin, piece.end, "sums"), "gather gradient " + unit_.name);
    }
    return all;
  }

  [[nodiscard]] comm::Collective collective(comm::CollectiveKind kind, const Extent& piece) const {
    comm::Collective c;
    c.kind = kind;
    c.partition = slice(owned_.partition, piece.begin, piece.end);
    return c;
  }

  ValueId accumulator(std::int64_t elements) {
    return persistent_value(graph_, runtime::accumulator_name(unit_.name),
                            {accumulated(), kernels::Shape{elements}}, runtime::Role::gradient,
                            plan_.gradient_tier);
  }

  void insert(std::string_view operation, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
              kernels::Attributes attributes) {
    Node node;
    node.operation = &kernels::find_operation(operation);
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.attributes = std::move(attributes);
    place(node, std::string(operation) + " gradient " + unit_.name);
  }

  void insert_collective(const comm::Collective& c, ValueId input, ValueId output,
                         std::string label) {
    Node node = collective_node(c, input, output, 0, runtime::Pass::backward, "");
    place(node, std::move(label));
  }

  void place(Node& node, std::string label) {
    node.block = graph_.nodes[at_].block;
    node.pass = runtime::Pass::backward;
    node.label = std::move(label);
    inserter_.after(at_, std::move(node));
  }

  Graph& graph_;
  runtime::NodeInserter& inserter_;
  const StepSettings& settings_;
  Position position_;
  const runtime::ParameterUnit& unit_;
  const runtime::UnitPlan& plan_;
  ValueId gradient_;
  OwnedUnit owned_;
  int at_;
};

}  // namespace

void reduction_pass(runtime::Graph& graph, const StepSettings& settings, Position position) {
  std::map<ValueId, int> last_writer;  // of a root
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i)
    for (ValueId out : graph.nodes[i].outputs) last_writer[graph.root_of(out)] = i;
  runtime::NodeInserter inserter;
  for (std::size_t u = 0; u < graph.units.size(); ++u) {
    if (!graph.units[u].trainable) continue;
    const int at = last_writer.at(graph.root_of(graph.unit_gradients[u]));
    graph.unit_gradients[u] =
        UnitReduction(graph, inserter, settings, position, static_cast<int>(u), at).run();
  }
  inserter.apply(graph);
}

}  // namespace strata::zero
