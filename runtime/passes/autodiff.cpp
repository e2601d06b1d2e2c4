#include "runtime/passes/autodiff.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>

#include "core/check.h"
#include "core/error.h"
#include "runtime/passes/gradient_gaps.h"
#include "runtime/passes/stale_read.h"

namespace strata::runtime {
namespace {

using kernels::BackwardStep;
using kernels::GradientRule;
using kernels::Source;

class Differentiator {
 public:
  Differentiator(Graph& graph, const DifferentiateOptions& options)
      : graph_(graph), options_(options) {}

  void run() {
    mark_needed();
    check_versions();
    const int forward_nodes = static_cast<int>(graph_.nodes.size());
    for (int i = forward_nodes - 1; i >= 0; --i) reverse(i);
    finish_units();
    check_versions();
  }

 private:
  [[nodiscard]] bool trains(std::size_t unit) const {
    return options_.frozen.empty() || !options_.frozen[unit];
  }

  /// Marks the values that need a gradient: those into which a parameter that trains flows.
  void mark_needed() {
    needed_.assign(graph_.values.size(), false);
    for (std::size_t u = 0; u < graph_.units.size(); ++u)
      needed_[graph_.unit_values[u]] = trains(u);
    for (const Node& node : graph_.nodes) {
      const bool any = std::any_of(node.inputs.begin(), node.inputs.end(),
                                   [&](ValueId in) { return needs(in); });
      for (ValueId out : node.outputs)
        if (any) needed_[graph_.root_of(out)] = true;
    }
  }

  [[nodiscard]] bool needs(ValueId id) const {
    const ValueId root = graph_.root_of(id);
    return root < static_cast<ValueId>(needed_.size()) && needed_[root];
  }

  [[nodiscard]] bool is_parameter(ValueId id) const {
    return graph_.values[graph_.root_of(id)].role == Role::parameter;
  }

  /// Returns the root of the gradient of a root, which is made at first use.
  ValueId gradient_root(ValueId root) {
    auto [at, fresh] = gradient_roots_.try_emplace(root, kNoValue);
    if (fresh) {
      Value value;
      value.name = "d " + graph_.values[root].name;
      value.type = graph_.type(root);
      value.role = Role::gradient;
      if (is_parameter(root)) {
        value.type = kernels::TensorType(options_.produced, value.type.shape);
        const auto unit = std::find(graph_.unit_values.begin(), graph_.unit_values.end(), root) -
                          graph_.unit_values.begin();
        at->second = graph_.add_value(std::move(value));
        graph_.unit_gradients[unit] = at->second;
      } else {
        at->second = graph_.add_value(std::move(value));
      }
    }
    return at->second;
  }

  /// Makes storage for the gradient of `id`: a view at the same place of its root's gradient.
  ValueId make_gradient(ValueId id) {
    const Value value = graph_.values[id];
    if (value.root == kNoValue && !is_parameter(id)) {
      Value gradient;
      gradient.name = "d " + value.name;
      gradient.type = value.type;
      gradient.role = Role::gradient;
      return graph_.add_value(std::move(gradient));
    }
    const ValueId root = gradient_root(graph_.root_of(id));
    STRATA_CHECK(wholes_.count(root) == 0, "a gradient of", value.name,
                 "after the readers of the whole");
    const std::int64_t element = size_of(value.type.dtype);
    const DType dtype = graph_.type(root).dtype;
    const ValueId place = graph_.add_view(
        root, value.offset_bytes / element * size_of(dtype),
        kernels::TensorType(dtype, value.type.shape, value.type.row_stride), "d " + value.name);
    graph_.values[place].version = last_version(root, place) + 1;
    places_[root].push_back(place);
    return place;
  }

  /// Returns the version that backward operations so far leave in a gradient's place; -1: none.
  [[nodiscard]] std::int32_t last_version(ValueId root, ValueId place) const {
    std::int32_t last = -1;
    if (const auto at = places_.find(root); at != places_.end())
      for (ValueId other : at->second)
        if (overlap(graph_, other, place)) last = std::max(last, graph_.values[other].version);
    return last;
  }

  /// Returns a gradient that was written part by part as a whole. If parts were written a different
  /// number of times (tied weights, rotations), raises the others' versions: all end with one.
  ValueId whole(ValueId root) {
    const auto [known, fresh] = wholes_.try_emplace(root, root);
    if (!fresh) return known->second;
    std::vector<std::int32_t> lasts;
    for (ValueId place : places_[root]) lasts.push_back(last_version(root, place));
    const std::int32_t end = lasts.empty() ? 0 : *std::max_element(lasts.begin(), lasts.end());
    for (std::size_t k = 0; k < lasts.size(); ++k)
      graph_.values[places_[root][k]].version += end - lasts[k];
    if (end > 0) {
      known->second = graph_.add_view(root, 0, graph_.type(root), graph_.values[root].name);
      graph_.values[known->second].version = end;
    }
    return known->second;
  }

  /// Returns the accumulated gradient of `id`, or kNoValue. A root has one, too, if all of its
  /// views got one: backward operations write those views side by side.
  ValueId gradient_of(ValueId id) {
    if (auto at = gradients_.find(id); at != gradients_.end()) return at->second;
    if (graph_.values[id].root == kNoValue) {
      if (auto at = gradient_roots_.find(id); at != gradient_roots_.end() && covered_[id] > 0) {
        STRATA_CHECK(covered_[id] == graph_.type(id).shape.elements(),
                     "only a part of this value got a gradient:", graph_.values[id].name);
        return whole(at->second);
      }
    }
    return kNoValue;
  }

  void remember(ValueId input, ValueId gradient) {
    if (gradients_.emplace(input, gradient).second) {
      const Value& value = graph_.values[input];
      if (value.root != kNoValue && counted_.insert({{value.root, value.offset_bytes}, 1}).second)
        covered_[value.root] += value.type.shape.elements();
    } else {
      gradients_[input] = gradient;
    }
  }

  /// Checks the place before a gradient of `target` is first written: two views of the same bytes,
  /// or a view and the whole, would overwrite or hide one another's gradients.
  void check_place(ValueId target) const {
    for (const auto& [value, gradient] : gradients_)
      STRATA_CHECK(value == target || !overlap(graph_, value, target),
                   "two gradients in one place:", graph_.values[value].name, "and",
                   graph_.values[target].name);
  }

  /// Checks that no operation, forward or backward, reads a value after another took its bytes.
  void check_versions() const {
    const std::string problem = find_stale_read(graph_);
    STRATA_CHECK(problem.empty(), problem);
  }

  /// Forgets the gradient of `output` if that is a new version of an older value's bytes: the older
  /// value's gradient is another one, which the backward pass of its node is about to make.
  void step_back(ValueId output) {
    const Value& value = graph_.values[output];
    if (value.root == kNoValue || is_parameter(output)) return;
    gradients_.erase(output);
    if (counted_.erase({value.root, value.offset_bytes}) > 0)
      covered_[value.root] -= value.type.shape.elements();
  }

  /// True if a node has a backward pass: all output gradients that its rule reads exist. False if
  /// none does; ends the process if only some do.
  bool active(const GradientRule& rule, const std::vector<ValueId>& output_gradients,
              const std::string& label) {
    int found = 0, missing = 0;
    const auto look = [&](const kernels::GradientOperand& operand) {
      if (operand.source != Source::output_gradient) return;
      (output_gradients[operand.index] != kNoValue ? found : missing)++;
    };
    for (const BackwardStep& step : rule.steps)
      for (const kernels::GradientOperand& operand : step.operands) look(operand);
    for (const auto& [input, operand] : rule.input_gradients) look(operand);
    STRATA_CHECK(found == 0 || missing == 0, "some outputs have no gradient:", label);
    return missing == 0;
  }

  /// Throws if something wants a gradient through `forward`, which has no rule.
  void require_no_gradient(const Node& forward) {
    for (ValueId out : forward.outputs)
      if (gradient_of(out) != kNoValue)
        throw InvalidArgument("'" + forward.label + "' stands between parameters and loss, and " +
                              "operation " + std::string(forward.operation->name) +
                              " has no gradient rule");
  }

  void reverse(int index) {
    const Node forward = graph_.nodes[index];
    if (std::none_of(forward.inputs.begin(), forward.inputs.end(),
                     [&](ValueId in) { return needs(in); }))
      return;
    if (forward.operation->gradient == nullptr) return require_no_gradient(forward);
    const GradientRule rule = forward.operation->gradient(
        graph_.types(forward.inputs), graph_.types(forward.outputs), forward.attributes);
    std::vector<ValueId> output_gradients;
    for (ValueId out : forward.outputs) output_gradients.push_back(gradient_of(out));
    if (!active(rule, output_gradients, forward.label)) return;
    for (ValueId out : forward.outputs) step_back(out);

    std::vector<ValueId> results;
    const auto resolve = [&](const kernels::GradientOperand& operand) {
      switch (operand.source) {
        case Source::input:
          return forward.inputs[operand.index];
        case Source::output:
          return graph_.nodes[index].outputs[operand.index];
        case Source::output_gradient:
          return output_gradients[operand.index];
        case Source::result:
          return results[operand.index];
      }
      return kNoValue;
    };
    const auto wanted = wanted_results(rule, forward);
    for (const BackwardStep& step : rule.steps)
      run_step(rule, step, forward, resolve, wanted, results);

    for (const auto& [input, operand] : rule.input_gradients) {
      const ValueId target = forward.inputs[input];
      if (!needs(target)) continue;
      if (operand.source == Source::result) {
        if (done_[operand.index] == target) continue;  // run_step put it in place
        contribute(target, results[operand.index], forward);
      } else if (operand.source == Source::output) {
        contribute_output(target, forward, index, operand.index);
      } else {
        contribute(target, resolve(operand), forward);
      }
    }
  }

  /// Places a gradient that the forward operation itself writes (head and loss): writes it straight
  /// to its place if it is the first one there, else adds it.
  void contribute_output(ValueId target, const Node& forward, int index, int output) {
    Node& node = graph_.nodes[index];
    if (is_parameter(target)) {
      node.attributes.set("gradient_dtype", static_cast<double>(options_.produced));
      const kernels::Types inferred =
          node.operation->infer(graph_.types(node.inputs), node.attributes);
      graph_.values[node.outputs[output]].type = inferred[output];
    }
    const bool placed = is_parameter(target) || graph_.values[target].root != kNoValue;
    if (placed && gradient_of(target) == kNoValue) {
      check_place(target);
      const ValueId place = make_gradient(target);
      node.outputs[output] = place;
      remember(target, place);
    } else {
      contribute(target, node.outputs[output], forward);
    }
  }

  /// Returns, per result of the rule, 1 if a needed input or a wanted later step reads it, else 0.
  std::vector<char> wanted_results(const GradientRule& rule, const Node& forward) {
    std::vector<int> first;  // index of each step's first result
    int count = 0;
    for (const BackwardStep& step : rule.steps) {
      first.push_back(count);
      count += outputs_of(step);
    }
    std::vector<char> wanted(static_cast<std::size_t>(count), false);
    for (const auto& [input, operand] : rule.input_gradients)
      if (operand.source == Source::result && needs(forward.inputs[input]))
        wanted[operand.index] = true;
    for (int s = static_cast<int>(rule.steps.size()) - 1; s >= 0; --s) {
      bool any = false;
      for (int k = 0; k < outputs_of(rule.steps[s]); ++k) any = any || wanted[first[s] + k];
      if (!any) continue;
      for (const kernels::GradientOperand& operand : rule.steps[s].operands)
        if (operand.source == Source::result) wanted[operand.index] = true;
    }
    return wanted;
  }

  static int outputs_of(const BackwardStep& step) { return step.outputs; }

  template <typename Resolve>
  void run_step(const GradientRule& rule, const BackwardStep& step, const Node& forward,
                const Resolve& resolve, const std::vector<char>& wanted,
                std::vector<ValueId>& results) {
    const int first = static_cast<int>(results.size());
    const int count = outputs_of(step);
    bool any = false;
    for (int k = 0; k < count; ++k) any = any || wanted[first + k];
    done_.resize(first + count, kNoValue);
    std::fill(done_.begin() + first, done_.end(), kNoValue);
    if (!any) {
      results.resize(first + count, kNoValue);
      return;
    }
    std::vector<ValueId> inputs;
    for (const kernels::GradientOperand& operand : step.operands)
      inputs.push_back(resolve(operand));
    kernels::Attributes attributes = forward.attributes;
    for (const auto& [name, value] : step.extra.items()) attributes.set(name, value);

    // The forward input, if any, whose gradient each result is.
    std::vector<ValueId> targets(static_cast<std::size_t>(count), kNoValue);
    for (const auto& [input, operand] : rule.input_gradients)
      if (operand.source == Source::result && operand.index >= first &&
          operand.index < first + count && needs(forward.inputs[input]) &&
          targets[operand.index - first] == kNoValue)
        targets[operand.index - first] = forward.inputs[input];
    for (ValueId target : targets)
      if (target != kNoValue && is_parameter(target))
        attributes.set("gradient_dtype", static_cast<double>(options_.produced));

    bool accumulated = false;
    if (step.accumulates && targets[0] != kNoValue)
      if (const ValueId existing = gradient_of(targets[0]); existing != kNoValue) {
        inputs.push_back(existing);
        accumulated = true;
      }
    const kernels::Operation& op = kernels::find_operation(step.operation);
    const kernels::Types inferred = op.infer(graph_.types(inputs), attributes);
    STRATA_CHECK(static_cast<int>(inferred.size()) == count, "rule and infer disagree:", op.name);
    const std::string label =
        "d " + forward.label +
        (count > 1 || rule.steps.size() > 1 ? "." + std::string(step.operation) : "");
    std::vector<ValueId> outputs;
    for (int k = 0; k < count; ++k) {
      const ValueId target = targets[k];
      const bool in_place =
          target != kNoValue && ((accumulated && k == 0) || gradient_of(target) == kNoValue);
      if (in_place) {
        check_place(target);
        outputs.push_back(make_gradient(target));
        done_[first + k] = target;
        remember(target, outputs.back());
      } else {
        Value value;
        value.name = fmt::format("{}.{}", label, k);
        value.type = inferred[k];
        value.role = Role::gradient;
        outputs.push_back(graph_.add_value(std::move(value)));
      }
    }
    graph_.apply_into(step.operation, std::move(inputs), outputs, std::move(attributes),
                      forward.block, Pass::backward, label);
    results.insert(results.end(), outputs.begin(), outputs.end());
  }

  /// Adds `value` to the gradient of `target`, or makes it the gradient if there is none.
  void contribute(ValueId target, ValueId value, const Node& forward) {
    const ValueId existing = gradient_of(target);
    if (existing == kNoValue) {
      STRATA_CHECK(graph_.values[target].root == kNoValue,
                   "a view needs its gradient written in place:", graph_.values[target].name);
      remember(target, value);
      return;
    }
    const ValueId sum = make_gradient(target);
    graph_.apply_into("add", {existing, value}, {sum}, {}, forward.block, Pass::backward,
                      "d " + forward.label + ".add");
    remember(target, sum);
  }

  /// Gives every unit that trains a gradient with one version in all of its parts.
  void finish_units() {
    for (std::size_t u = 0; u < graph_.units.size(); ++u)
      if (trains(u)) graph_.unit_gradients[u] = whole(gradient_root(graph_.unit_values[u]));
    fill_gradient_gaps(graph_);
  }

  Graph& graph_;
  const DifferentiateOptions& options_;
  std::vector<bool> needed_;                   // indexed by root
  std::map<ValueId, ValueId> gradients_;       // value -> its gradient so far
  std::map<ValueId, ValueId> gradient_roots_;  // root -> root of its gradient, when views have one
  std::map<ValueId, std::vector<ValueId>> places_;  // root of a gradient -> its written parts
  std::map<ValueId, ValueId> wholes_;               // root of a gradient -> its final whole
  std::map<ValueId, std::int64_t> covered_;         // root -> elements whose gradient was written
  std::map<std::pair<ValueId, std::int64_t>, int> counted_;
  std::vector<ValueId> done_;  // one per result of the current rule: target in place
};

}  // namespace

void differentiate(Graph& graph, const DifferentiateOptions& options) {
  Differentiator(graph, options).run();
}

}  // namespace strata::runtime
