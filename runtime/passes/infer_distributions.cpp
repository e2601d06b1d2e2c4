#include "runtime/passes/infer_distributions.h"

#include <fmt/core.h>
#include <optional>
#include <vector>

namespace strata::runtime {
namespace {

using comm::CollectiveKind;
using comm::MeshAxis;
using kernels::Misfit;
using kernels::Spread;

/// Derives a collective's output along its axis. Kinds not listed keep their input if it is no sum.
std::optional<Misfit> spread_collective(CollectiveKind kind, Spread input, Spread& output) {
  const auto turns = [&](Spread from, Spread to) -> std::optional<Misfit> {
    output = to;
    if (input == from || input == kernels::kZeros) return {};
    return Misfit{0, from};
  };
  switch (kind) {
    case CollectiveKind::all_gather:
      return turns(kernels::sharded(0), kernels::kReplicated);
    case CollectiveKind::reduce_scatter:
      return turns(kernels::kPartialSum, kernels::sharded(0));
    case CollectiveKind::all_reduce:
      return turns(kernels::kPartialSum, kernels::kReplicated);
    case CollectiveKind::broadcast:
      return turns(input == kernels::kPartialSum ? kernels::kReplicated : input,
                   kernels::kReplicated);
    default:
      return turns(input == kernels::kPartialSum ? kernels::kReplicated : input, input);
  }
}

class Inference {
 public:
  Inference(Graph& graph, const comm::Mesh& mesh) : graph_(graph), mesh_(mesh) {}

  std::string run() {
    bool spans_some = false;
    for (int i = 0; i < comm::kMeshAxes; ++i) {
      const auto axis = static_cast<MeshAxis>(i);
      if (mesh_.along(axis) > 1)
        spans_some = true;
      else
        for (Value& value : graph_.values) value.distribution.along(axis) = {};
    }
    if (!spans_some) return "";
    writes_.resize(graph_.values.size());
    for (const Node& node : graph_.nodes) {
      for (int i = 0; i < comm::kMeshAxes; ++i)
        if (mesh_.along(static_cast<MeshAxis>(i)) > 1) visit(node, static_cast<MeshAxis>(i));
      if (!problem_.empty()) break;
      for (ValueId out : node.outputs) writes_[at(graph_.root_of(out))].push_back(out);
    }
    return problem_;
  }

 private:
  static std::size_t at(ValueId id) { return static_cast<std::size_t>(id); }

  Spread& spread_of(ValueId id, MeshAxis axis) {
    return graph_.values[at(id)].distribution.along(axis);
  }

  void visit(const Node& node, MeshAxis axis) {
    inputs_.clear();
    for (ValueId in : node.inputs) inputs_.push_back(read(node, in, axis));
    if (node.predicate != kNoValue)
      if (const Spread found = read(node, node.predicate, axis); found != kernels::kReplicated)
        report(node, "its predicate", node.predicate, found, kernels::kReplicated, axis);
    outputs_.resize(node.outputs.size());
    const bool communicates = node.collective && node.collective->axes.has(axis);
    const std::optional<Misfit> misfit =
        communicates
            ? spread_collective(node.collective->kind, inputs_[0], outputs_[0])
            : spread_outputs(node.operation->spread.of(node.attributes), inputs_, outputs_);
    if (misfit) {
      const std::size_t k = at(misfit->operand);
      report(node, fmt::format("operand {}", k), node.inputs[k], inputs_[k], misfit->expected,
             axis);
    }
    for (std::size_t k = 0; k < outputs_.size(); ++k)
      spread_of(node.outputs[k], axis) = outputs_[k];
  }

  /// Returns what the writers of the value's bytes left there, or what is declared if nothing wrote
  /// them. A value declared as sharded that was written replicated is this rank's own part, unless
  /// a transfer carries it. An empty value fits everything.
  Spread read(const Node& node, ValueId id, MeshAxis axis) {
    if (graph_.bytes(id) == 0) return kernels::kZeros;
    std::optional<Spread> found;
    for (ValueId writer : writes_[at(graph_.root_of(id))]) {
      if (graph_.values[at(writer)].version != graph_.values[at(id)].version) continue;
      if (!overlap(graph_, writer, id)) continue;
      const Spread written = spread_of(writer, axis);
      if (found && *found != kernels::kZeros && written != kernels::kZeros && written != *found)
        report(node, "in one operand", id, *found, written, axis);
      if (!found || *found == kernels::kZeros) found = written;
    }
    Spread& declared = spread_of(id, axis);
    const bool is_own_part = node.purpose == TransferPurpose::none &&
                             declared.kind == Spread::Kind::sharded &&
                             found == kernels::kReplicated;
    if (found && !is_own_part) declared = *found;
    return declared;
  }

  void report(const Node& node, const std::string& operand, ValueId id, Spread found,
              Spread expected, MeshAxis axis) {
    if (!problem_.empty()) return;
    problem_ = "'" + node.label + "' (" + std::string(node.operation->name) + ") reads " + operand +
               ", '" + describe(graph_.values[at(id)]) + "', as " + to_string(found, axis) +
               " where it takes " + to_string(expected, axis);
  }

  Graph& graph_;
  const comm::Mesh& mesh_;
  std::vector<std::vector<ValueId>> writes_;  // one list per root: values written so far
  std::vector<Spread> inputs_, outputs_;      // spreads of the current node
  std::string problem_;
};

}  // namespace

std::string infer_distributions(Graph& graph, const comm::Mesh& mesh) {
  return Inference(graph, mesh).run();
}

}  // namespace strata::runtime
