#include "zero/reduction_pass.h"

#include <algorithm>
#include <bit>
#include <map>

#include "runtime/graph/collective_node.h"
#include "runtime/graph/node_inserter.h"
#include "runtime/graph/persistent_values.h"
#include "runtime/graph/state_names.h"
#include "zero/partition.h"

namespace strata::zero {
namespace {

using runtime::Graph;
using runtime::Node;
using runtime::ValueId;

/// Handles one unit's gradient. `at` is the list position of its last writer; all nodes are
/// inserted after it, so that a reduction can run while the backward pass goes on.
class UnitReduction {
 public:
  UnitReduction(Graph& graph, runtime::NodeInserter& inserter, const RankPlan& of,
                const MicroStepKind& kind, int unit, int at)
      : graph_(graph),
        inserter_(inserter),
        of_(of),
        kind_(kind),
        unit_(graph.units[unit]),
        plan_(of.plan.units[unit]),
        gradient_(graph.unit_gradients[unit]),
        owned_(owned_unit(unit_, plan_, of)),
        at_(at) {}

  /// Returns the gradient that the update is to read: the accumulator in its last version. A rank
  /// whose part is empty may get its empty sum instead, so that on every rank the last writer comes
  /// after the reduction. Before the rank's last leaf, returns the partial sum that waits.
  ValueId run() {
    return plan_.shard_gradient ? reduce_then_accumulate() : accumulate_then_reduce();
  }

 private:
  /// Returns the number of elements of the rank's own part.
  [[nodiscard]] std::int64_t mine() const { return owned_.owned_end - owned_.owned_begin; }
  [[nodiscard]] DType produced() const { return graph_.type(gradient_).dtype; }
  [[nodiscard]] DType accumulated() const { return of_.plan.gradient.accumulated; }

  /// Handles sharded gradients: each micro-step is a leaf and reduced; only the own part is kept.
  ValueId reduce_then_accumulate() {
    if (!kind_.completes) return keep_partial_sum(gradient_);
    const ValueId before = accumulator(mine(), kernels::sharded(0));
    const ValueId sum = graph_.next_version(before);
    if (kind_.opens_sum && accumulated() == DType::f32) {
      reduce(gradient_, sum, owned_.owned_begin);
      return sum;
    }
    const ValueId reduced = reduce_apart(gradient_);
    if (mine() == 0) return reduced;
    take(reduced, before, sum);
    return sum;
  }

  /// Handles whole gradients: micro-steps add up locally, then the sum of a leaf is reduced (the
  /// sum of the step if a rank has one leaf).
  ValueId accumulate_then_reduce() {
    // The only micro-step of one of several leaves has nothing to add up.
    const bool alone = of_.plan.leaves_per_rank() > 1 && kind_.opens_sum && kind_.closes_sum;
    if (alone && !kind_.completes) return keep_partial_sum(gradient_);
    const ValueId sum = alone ? accumulator(unit_.elements, kernels::kPartialSum) : accumulate();
    if (!kind_.closes_sum || !changes_anything()) return sum;
    if (!kind_.completes) return keep_partial_sum(sum);
    const ValueId contribution = alone ? gradient_ : sum;
    const ValueId reduced = graph_.next_version(sum);  // the own part; the rest is unchanged
    ValueId own = reduced;
    if (accumulated() == DType::f32)
      reduce(contribution, reduced, 0);
    else
      own = reduce_and_round(contribution, reduced);
    if (!plan_.shard_optimizer) return gather_sums(reduced);
    clear_others(reduced);
    return own;
  }

  /// Adds the micro-step's gradient to the whole accumulator.
  ValueId accumulate() {
    ValueId sum = gradient_;
    if (kind_.opens_sum && produced() == accumulated() && !on_disk()) {
      produce_in(runtime::accumulator_name(unit_.name));
    } else {
      const ValueId before = accumulator(unit_.elements, kernels::kPartialSum);
      sum = graph_.next_version(before);
      take(gradient_, before, sum);
    }
    return sum;
  }

  /// Lets backward operations write this storage themselves.
  void produce_in(const std::string& storage) {
    const ValueId root = graph_.root_of(gradient_);
    graph_.make_persistent(root, storage);
    graph_.set_home(root, plan_.gradient_tier);
  }

  /// True if the gradient lives on the disk. Roots there are written as a whole, and by one block,
  /// so backward operations cannot make their parts in place.
  [[nodiscard]] bool on_disk() const { return plan_.gradient_tier == runtime::Tier::disk; }

  /// Gives other ranks' parts the version of `sum` on the disk, where nobody reads them again.
  void clear_others(ValueId sum) {
    const ValueId root = graph_.root_of(sum);
    if (!on_disk() || graph_.type(root).shape.elements() != unit_.elements) return;
    const ValueId whole = graph_.at_version(root, graph_.values[sum].version);
    for (const ElementRange& part :
         {ElementRange{0, owned_.owned_begin}, ElementRange{owned_.owned_end, unit_.elements}})
      if (part.elements() > 0)
        insert("fill_zero", {}, {runtime::flat_view(graph_, whole, part.begin, part.end, "others")},
               {{"dtype", static_cast<double>(graph_.type(root).dtype)},
                {"rows", static_cast<double>(part.elements())}});
  }

  /// True for a leaf that is its own sum over ranks: fp32, in a world of one.
  [[nodiscard]] bool is_sum(ValueId leaf) const {
    return of_.plan.data_ranks() == 1 && of_.plan.gradient.reduced == DType::f32 &&
           graph_.type(leaf).dtype == DType::f32;
  }

  /// False if reduction is the identity. A world of one still rounds to the wire type.
  [[nodiscard]] bool changes_anything() const {
    const DType reduced = of_.plan.gradient.reduced;
    return of_.plan.leaves() > 1 || (reduced != DType::f32 && reduced != accumulated());
  }

  /// Makes the first micro-step's part `sum`, or adds a later one to what was there `before`.
  void take(ValueId part, ValueId before, ValueId sum) {
    if (kind_.opens_sum)
      round_into(part, sum);
    else
      insert("accumulate", {before, part}, {sum}, {});
  }

  void round_into(ValueId from, ValueId to) {
    insert("convert", {from}, {to}, {{"dtype", static_cast<double>(accumulated())}});
  }

  /// Makes the own part of the mean over all leaves, in fp32 storage of its own.
  ValueId reduce_apart(ValueId source) {
    const ValueId reduced = own_piece("reduced/");
    reduce(source, reduced, owned_.owned_begin);
    return reduced;
  }

  ValueId own_piece(const std::string& name) {
    runtime::Value part;
    part.name = name + unit_.name;
    part.type = {DType::f32, kernels::Shape{mine()}};
    part.role = runtime::Role::gradient;
    return graph_.add_value(std::move(part));
  }

  /// Reduces apart, then rounds: fp32 sums have no room in storage of 16-bit contributions.
  ValueId reduce_and_round(ValueId contribution, ValueId sum) {
    const ValueId reduced = reduce_apart(contribution);
    if (owned_.owned_begin == owned_.owned_end) return reduced;
    round_into(reduced,
               runtime::flat_view(graph_, sum, owned_.owned_begin, owned_.owned_end, "own sum"));
    return sum;
  }

  /// Makes the own part of the mean over all leaves, of which `source` is this rank's last.
  /// `target` holds elements from `target_begin` of flat space.
  void reduce(ValueId source, ValueId target, std::int64_t target_begin) {
    sum_leaves(source, target, target_begin, 1.0f / static_cast<float>(of_.plan.leaves()));
  }

  /// Makes the own part of the sum over those leaves so far that form a subtree with this one. It
  /// waits for the other half of the next larger subtree.
  ValueId keep_partial_sum(ValueId source) {
    if (kind_.joins == 0 && source == gradient_ && is_sum(source) && !on_disk()) {
      produce_in(partial_sum_levels(of_.plan) > 0 ? runtime::partial_sum_name(unit_.name, 0)
                                                  : runtime::accumulator_name(unit_.name));
      return source;
    }
    const ValueId sum = graph_.next_version(partial_sum(kind_.joins));
    sum_leaves(source, sum, owned_.owned_begin, 1);
    clear_others(sum);
    return sum;
  }

  /// Adds up the leaf `source` over ranks, then the partial sums that it joins: smaller subtrees
  /// first, as in a binary counter.
  void sum_leaves(ValueId source, ValueId target, std::int64_t target_begin, float scale) {
    if (kind_.joins == 0) return reduce_scatter(source, target, target_begin, scale);
    if (mine() == 0) return reduce_scatter(source, target, target_begin, 1);
    const bool is_there = is_sum(source);
    ValueId sum = is_there ? runtime::flat_view(graph_, source, 0, unit_.elements, "leaf")
                           : own_piece("leaf/");
    if (!is_there) reduce_scatter(source, sum, owned_.owned_begin, 1);
    for (int level = 0; level + 1 < kind_.joins; ++level) {
      const bool others = is_there && level == 0;  // `source` must not change
      const ValueId larger = others ? own_piece("leaf/") : graph_.next_version(sum);
      insert("accumulate", {sum, partial_sum(level)}, {larger}, {});
      sum = larger;
    }
    const ValueId own = runtime::flat_view(graph_, target, owned_.owned_begin - target_begin,
                                           owned_.owned_end - target_begin, "own sum");
    insert("accumulate", {partial_sum(kind_.joins - 1), sum}, {own}, {{"scale", scale}});
  }

  /// Makes the own part of the sum over ranks; `target` is as in reduce().
  void reduce_scatter(ValueId source, ValueId target, std::int64_t target_begin, float scale) {
    for (const ElementRange& piece : cut(unit_.elements, of_.plan.limits.reduce_bucket_elements)) {
      const ElementRange mine = intersect(piece, {owned_.owned_begin, owned_.owned_end});
      const std::int64_t begin = mine.elements() == 0 ? 0 : mine.begin - target_begin;
      comm::Collective reduce = collective(comm::CollectiveKind::reduce_scatter, piece);
      reduce.input_type = graph_.type(source).dtype;
      reduce.wire_type = of_.plan.gradient.reduced;
      reduce.scale = scale;
      insert_collective(
          reduce, runtime::flat_view(graph_, source, piece.begin, piece.end, "contribution"),
          runtime::flat_view(graph_, target, begin, begin + mine.elements(), "own sum"),
          "reduce " + unit_.name);
    }
  }

  ValueId gather_sums(ValueId reduced) {
    const ValueId all = graph_.next_version(reduced);
    for (const ElementRange& piece : cut(unit_.elements, of_.plan.limits.gather_bucket_elements)) {
      const ElementRange mine = intersect(piece, {owned_.owned_begin, owned_.owned_end});
      const std::int64_t begin = mine.elements() == 0 ? 0 : mine.begin;
      comm::Collective gather = collective(comm::CollectiveKind::all_gather, piece);
      gather.input_type = gather.wire_type = accumulated();
      insert_collective(
          gather, runtime::flat_view(graph_, reduced, begin, begin + mine.elements(), "own sum"),
          runtime::flat_view(graph_, all, piece.begin, piece.end, "sums"),
          "gather gradient " + unit_.name);
    }
    return all;
  }

  [[nodiscard]] comm::Collective collective(comm::CollectiveKind kind,
                                            const ElementRange& piece) const {
    comm::Collective c;
    c.kind = kind;
    c.partition =
        slice(partition_unit(unit_.elements, of_.plan.data_ranks()), piece.begin, piece.end);
    return c;
  }

  /// Returns the own part of a partial sum, as the Program finds it.
  ValueId partial_sum(int level) {
    if (level >= partial_sum_levels(of_.plan)) {
      if (plan_.shard_gradient) return accumulator(mine(), kernels::sharded(0));
      return runtime::flat_view(graph_, accumulator(unit_.elements, kernels::sharded(0)),
                                owned_.owned_begin, owned_.owned_end, "partial sum");
    }
    return found(runtime::partial_sum_name(unit_.name, level), DType::f32, mine(),
                 kernels::sharded(0));
  }

  ValueId accumulator(std::int64_t elements, kernels::Spread spread) {
    return found(runtime::accumulator_name(unit_.name), accumulated(), elements, spread);
  }

  /// Returns storage as the Program before left it.
  ValueId found(const std::string& name, DType dtype, std::int64_t elements,
                kernels::Spread spread) {
    const ValueId root = runtime::persistent_value(graph_, name, {dtype, kernels::Shape{elements}},
                                                   runtime::Role::gradient, plan_.gradient_tier);
    graph_.values[root].distribution = runtime::over_data(spread);
    return root;
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
  const RankPlan& of_;
  MicroStepKind kind_;
  const runtime::ParameterUnit& unit_;
  const runtime::UnitPlan& plan_;
  ValueId gradient_;
  OwnedUnit owned_;
  int at_;
};

}  // namespace

int partial_sum_levels(const runtime::Plan& plan) {
  const int sizes = std::countr_zero(static_cast<unsigned>(plan.leaves_per_rank()));
  const bool accumulator_is_free = plan.micro_steps == 1 && plan.gradient.accumulated == DType::f32;
  return accumulator_is_free ? std::max(sizes - 1, 0) : sizes;
}

void reduction_pass(runtime::Graph& graph, const RankPlan& of, const MicroStepKind& kind) {
  std::map<ValueId, int> last_writer;  // keyed by root
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i)
    for (ValueId out : graph.nodes[i].outputs) last_writer[graph.root_of(out)] = i;
  runtime::NodeInserter inserter;
  for (std::size_t u = 0; u < graph.units.size(); ++u) {
    if (!of.plan.units[u].recipe.trainable) continue;
    const int at = last_writer.at(graph.root_of(graph.unit_gradients[u]));
    graph.unit_gradients[u] =
        UnitReduction(graph, inserter, of, kind, static_cast<int>(u), at).run();
  }
  inserter.apply(graph);
}

}  // namespace strata::zero
