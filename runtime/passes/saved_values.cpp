#include "runtime/passes/saved_values.h"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/nearest_name.h"
#include "runtime/graph/version_map.h"

namespace strata::runtime {
namespace {

bool is_cheap(const Node& node, std::size_t output) {
  const std::string_view name = node.operation->name;
  return name == "norm" || name == "gelu" || name == "swiglu" ||
         (name == "residual_norm" && output != kResidualSum);
}

/// FLOPs that a machine does while it moves a byte of memory: between those of CPUs and of GPUs.
constexpr double kFlopsPerByte = 32;

double work_of(const Graph& graph, const Node& node) {
  const kernels::Cost cost =
      node.operation->cost(graph.types(node.inputs), graph.types(node.outputs), node.attributes);
  return cost.flops + kFlopsPerByte * cost.bytes;
}

bool is_norm_of_sum(const Node& node, ValueId output) {
  return node.operation->name == "residual_norm" && output != node.outputs[kResidualSum];
}

/// The history of one root that the forward pass makes.
struct Life {
  SavedValue saved;
  std::vector<ValueId> written;  ///< versions written by the forward pass, in order
  bool is_read_backward = false;
  bool is_written_backward = false;
};

class Listing {
 public:
  explicit Listing(const Graph& graph) : graph_(graph) {}

  std::vector<SavedValue> run() {
    for (node_ = 0; node_ < static_cast<int>(graph_.nodes.size()); ++node_) {
      const Node& node = graph_.nodes[static_cast<std::size_t>(node_)];
      for (ValueId in : node.inputs) read(node, in);
      for (std::size_t i = 0; i < node.outputs.size(); ++i) write(node, i);
    }
    add_work();
    std::vector<SavedValue> list;
    std::map<int, std::map<std::string, int>> of_name;  // block, name -> number of values
    for (ValueId root : order_) {
      Life& life = lives_.at(root);
      if (!is_saved(life)) continue;
      life.saved.can_leave = can_leave(root, life);
      life.saved.bytes = graph_.bytes(root);
      const int same = of_name[life.saved.block][life.saved.name]++;
      if (same > 0) life.saved.name += fmt::format(" #{}", same + 1);
      list.push_back(std::move(life.saved));
    }
    return list;
  }

 private:
  [[nodiscard]] const Value& value(ValueId id) const {
    return graph_.values[static_cast<std::size_t>(id)];
  }

  void read(const Node& node, ValueId id) {
    const auto at = lives_.find(graph_.root_of(id));
    if (at == lives_.end()) return;
    Life& life = at->second;
    life.saved.first_user_block = std::min(life.saved.first_user_block, node.block);
    life.saved.last_user_block = std::max(life.saved.last_user_block, node.block);
    if (node.pass != Pass::forward) life.is_read_backward = true;
  }

  void write(const Node& node, std::size_t output) {
    const ValueId id = node.outputs[output], root = graph_.root_of(id);
    if (value(root).storage != Storage::transient || value(root).role != Role::activation) return;
    if (node.pass != Pass::forward) {
      if (const auto at = lives_.find(root); at != lives_.end())
        at->second.is_written_backward = true;
      return;
    }
    const auto [at, is_first] = lives_.try_emplace(root);
    at->second.written.push_back(id);
    if (!is_first) return;
    order_.push_back(root);
    at->second.saved = {.root = root,
                        .block = node.block,
                        .name = name_in_block(root, node.block),
                        .first_user_block = node.block,
                        .last_user_block = node.block,
                        .maker = node_,
                        .is_cheap = is_cheap(node, output)};
  }

  [[nodiscard]] static bool is_saved(const Life& life) {
    return life.is_read_backward || !life.saved.is_used_by(life.saved.block, life.saved.block);
  }

  /// Adds up the work of recomputing each root: values that are not saved are recomputed with it.
  void add_work() {
    for (const Node& node : graph_.nodes) {
      if (node.pass != Pass::forward) continue;
      const double own = work_of(graph_, node);
      for (const ValueId out : node.outputs) {
        const auto made = lives_.find(graph_.root_of(out));
        if (made == lives_.end()) continue;
        double work = own;
        for (const ValueId in : node.inputs)
          if (const auto at = lives_.find(graph_.root_of(in)); at != lives_.end() && at != made &&
                                                               !is_saved(at->second) &&
                                                               !is_norm_of_sum(node, out))
            work += at->second.saved.work;
        made->second.saved.work += work;
      }
    }
  }

  [[nodiscard]] std::string name_in_block(ValueId root, int block) const {
    const std::string& name = value(root).name;
    const std::string prefix = graph_.blocks[static_cast<std::size_t>(block)] + ".";
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  }

  /// True if the forward pass leaves the whole root in its last writer's version, unwritten later.
  [[nodiscard]] bool can_leave(ValueId root, const Life& life) const {
    if (life.is_written_backward || !value(root).type.contiguous()) return false;
    const std::int32_t version = value(life.written.back()).version;
    std::int64_t row_bytes = graph_.bytes(root);
    for (ValueId id : life.written)
      if (const auto rows = rows_of(graph_.type(id), 0); !rows.contiguous())
        row_bytes = rows.stride;
    VersionMap versions(row_bytes, {});
    for (ValueId id : life.written)
      versions.for_each(
          rows_of(graph_.type(id), value(id).offset_bytes),
          [&](VersionMap::Content& content, std::int64_t) { content.version = value(id).version; });
    bool one = true;
    versions.for_each({0, graph_.bytes(root), 1, graph_.bytes(root)},
                      [&](const VersionMap::Content& content, std::int64_t) {
                        one = one && content.version == version;
                      });
    return one;
  }

  const Graph& graph_;
  int node_ = 0;
  std::map<ValueId, Life> lives_;  // keyed by root
  std::vector<ValueId> order_;     // roots in the order in which they are made
};

/// True if the block has a value of that name. If it is not saved, nothing reads it later, since
/// frozen layers need less.
bool makes(const Graph& graph, int block, const std::string& name) {
  const std::string whole = graph.blocks[static_cast<std::size_t>(block)] + "." + name;
  return std::ranges::any_of(graph.values, [&](const Value& value) {
    return value.root == kNoValue && value.role == Role::activation && value.name == whole;
  });
}

void check_action(const Graph& graph, const SavedValue& value, SavedAction action,
                  std::string_view planner) {
  if ((action == SavedAction::host || action == SavedAction::disk) && !value.can_leave)
    throw InvalidArgument(fmt::format(
        "{} sends '{}' of block '{}' to the {}, and it cannot leave the device as a "
        "whole: keep it, or recompute it",
        planner, value.name, graph.blocks[static_cast<std::size_t>(value.block)], name_of(action)));
}

}  // namespace

std::vector<SavedValue> list_saved_values(const Graph& graph) { return Listing(graph).run(); }

std::map<ValueId, SavedAction> saved_actions(const Graph& graph,
                                             const std::vector<BlockActions>& planned,
                                             std::string_view planner) {
  std::map<ValueId, SavedAction> actions;
  std::map<int, std::map<std::string, const SavedValue*>> by_block;
  const std::vector<SavedValue> values = list_saved_values(graph);
  for (const SavedValue& value : values) {
    actions[value.root] = SavedAction::keep;
    by_block[value.block][value.name] = &value;
  }
  const auto blocks = static_cast<int>(graph.blocks.size());
  for (const BlockActions& range : planned) {
    if (range.last_block >= blocks)
      throw InvalidArgument(fmt::format("{} names block {}, and the model has {}, counted from 0",
                                        planner, range.last_block, blocks));
    for (int block = range.first_block; block <= range.last_block; ++block)
      for (const auto& [name, action] : range.actions) {
        const auto& known = by_block[block];
        const auto at = known.find(name);
        if (at == known.end()) {
          if (makes(graph, block, name)) continue;
          std::vector<std::string_view> names;
          for (const auto& [other, value] : known) names.push_back(other);
          const std::string near = suggestion(name, names);
          throw InvalidArgument(
              fmt::format("{} names '{}', which block '{}' does not save{} {}", planner, name,
                          graph.blocks[static_cast<std::size_t>(block)],
                          near.empty() ? "; it saves" : near + " It saves",
                          names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "))));
        }
        check_action(graph, *at->second, action, planner);
        actions[at->second->root] = action;
      }
  }
  return actions;
}

void SavedChoices::recompute_blocks(int first, int last) {
  for (const SavedValue& value : values_)
    if (value.block >= first && value.block <= last && value.is_used_by(first, last))
      actions_[value.root] = SavedAction::recompute;
}

void SavedChoices::recompute_cheap(int first, int last) {
  for (const SavedValue& value : values_)
    if (value.block >= first && value.block <= last && value.is_cheap &&
        value.is_used_by(value.block, value.block))
      actions_[value.root] = SavedAction::recompute;
}

std::vector<SavedChoices::OperationOutputs> SavedChoices::cheapest_first(int first,
                                                                         int last) const {
  std::map<std::pair<int, double>, OperationOutputs> made;
  for (const SavedValue& value : values_) {
    if (value.block < first || value.block > last || !value.is_used_by(value.block, value.block))
      continue;
    OperationOutputs& outputs = made[{value.maker, value.work}];
    outputs.block = value.block;
    outputs.work = value.work;
    outputs.bytes += value.bytes;
    outputs.roots.push_back(value.root);
  }
  std::vector<OperationOutputs> cheapest;
  for (auto& [maker, outputs] : made) cheapest.push_back(std::move(outputs));
  std::ranges::stable_sort(cheapest, [](const OperationOutputs& a, const OperationOutputs& b) {
    return std::pair(a.price(), a.block) < std::pair(b.price(), b.block);
  });
  return cheapest;
}

void SavedChoices::recompute_part(int first, int last, double part) {
  const std::vector<OperationOutputs> cheapest = cheapest_first(first, last);
  double whole = 0, freed = 0;
  for (const OperationOutputs& outputs : cheapest) whole += static_cast<double>(outputs.bytes);
  for (const OperationOutputs& outputs : cheapest) {
    if (freed >= part * whole) return;
    for (const ValueId root : outputs.roots) actions_[root] = SavedAction::recompute;
    freed += static_cast<double>(outputs.bytes);
  }
}

std::vector<std::int64_t> SavedChoices::freed_by_price(int first, int last) const {
  const std::vector<OperationOutputs> cheapest = cheapest_first(first, last);
  std::vector<std::int64_t> freed;
  for (std::size_t i = 0; i < cheapest.size(); ++i) {
    if (i == 0 || cheapest[i].price() != cheapest[i - 1].price())
      freed.push_back(freed.empty() ? 0 : freed.back());
    freed.back() += cheapest[i].bytes;
  }
  return freed;
}

void SavedChoices::send(int first, int last, SavedAction to, std::int64_t least_bytes) {
  for (const SavedValue& value : values_)
    if (value.block >= first && value.block <= last && value.can_leave &&
        value.bytes >= least_bytes)
      actions_.try_emplace(value.root, to);
}

std::vector<BlockActions> SavedChoices::actions() const {
  std::vector<BlockActions> ranges;
  std::map<int, BlockActions> of_block;
  for (const SavedValue& value : values_) {
    const auto at = actions_.find(value.root);
    of_block[value.block].actions.emplace_back(
        value.name, at == actions_.end() ? SavedAction::keep : at->second);
  }
  for (auto& [block, range] : of_block) {
    range.first_block = range.last_block = block;
    if (!ranges.empty() && ranges.back().last_block == block - 1 &&
        ranges.back().actions == range.actions)
      ranges.back().last_block = block;
    else
      ranges.push_back(std::move(range));
  }
  return ranges;
}

}  // namespace strata::runtime
