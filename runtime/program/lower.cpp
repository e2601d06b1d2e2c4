#include "runtime/program/lower.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/check.h"
#include "runtime/program/alias_in_place.h"
#include "runtime/program/arena_alignment.h"
#include "runtime/program/node_demand.h"
#include "runtime/program/waits.h"
#include "runtime/schedule/place_lifetimes.h"

namespace strata::runtime {
namespace {

/// Capabilities for the host's work beside a device: each instruction uses one thread.
constexpr kernels::DeviceCapabilities kOnHost;

class Lowering {
 public:
  Lowering(Graph graph, const PersistentLayout& persistent, const LowerOptions& options)
      : graph_(std::move(graph)), persistent_(persistent), options_(options) {
    alias_in_place(graph_);
    add_workspaces();
    for (Node& node : graph_.nodes) node.demand = demand_of(graph_, node, options_.where);
  }

  Program run() {
    find_lifetimes();
    place();
    for (const Node& node : graph_.nodes)
      program_.foreseen_ns += machine::foreseen_ns(options_.machine, node.demand);
    return finish();
  }

  std::variant<Program, Shortage> run(const Scheduling& scheduling) {
    if (!has_transfers(graph_)) return run();
    if (std::optional<Shortage> shortage = place_scheduled(scheduling)) return std::move(*shortage);
    return finish();
  }

 private:
  [[nodiscard]] bool is_transient(ValueId root) const {
    return graph_.values[root].storage == Storage::transient;
  }

  /// Adds scratch memory as transient values that live during one node.
  void add_workspaces() {
    workspaces_.assign(graph_.nodes.size(), kNoValue);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      std::int64_t bytes = 0;
      if (node.collective) {
        bytes = comm::workspace_bytes(options_.where.on(node.collective->axes), *node.collective);
      } else {
        bytes = kernels::workspace_bytes(
            *node.operation, graph_.types(node.inputs), graph_.types(node.outputs), node.attributes,
            node.queue == Queue::host ? kOnHost : options_.machine.device.capabilities);
      }
      if (bytes == 0) continue;
      Value value;
      if (node.queue == Queue::host) value.tier = Tier::pageable;
      value.name = node.label + ".workspace";
      value.type = kernels::TensorType(DType::u8, kernels::Shape{bytes});
      workspaces_[i] = graph_.add_value(std::move(value));
    }
  }

  template <typename Visit>
  void for_each_root(const Node& node, std::size_t index, const Visit& visit) {
    for (ValueId id : node.inputs) visit(graph_.root_of(id));
    for (ValueId id : node.outputs) visit(graph_.root_of(id));
    if (node.predicate != kNoValue) visit(graph_.root_of(node.predicate));
    if (workspaces_[index] != kNoValue) visit(workspaces_[index]);
  }

  void find_lifetimes() {
    for (const Node& node : graph_.nodes)
      for (ValueId out : node.outputs)
        STRATA_CHECK(graph_.values[graph_.root_of(out)].storage != Storage::handed_on,
                     "only a schedule keeps what is handed on free of others:", node.label);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      for_each_root(graph_.nodes[i], i, [&](ValueId root) {
        if (!is_transient(root)) return;
        auto [at, fresh] = lifetime_of_.try_emplace(root, lifetimes_.size());
        if (fresh) {
          lifetimes_.push_back(
              {.bytes = graph_.bytes(root), .begin = static_cast<std::int64_t>(i)});
          roots_.push_back(root);
        }
        lifetimes_[at->second].end = static_cast<std::int64_t>(i) + 1;
      });
  }

  void place() {
    for (int t = 0; t < kTiers; ++t) {
      const std::int64_t alignment = alignment_of(static_cast<Tier>(t));
      std::vector<Lifetime> tier;
      std::vector<std::size_t> index;
      for (std::size_t k = 0; k < lifetimes_.size(); ++k)
        if (static_cast<int>(graph_.values[roots_[k]].tier) == t) {
          tier.push_back(lifetimes_[k]);
          index.push_back(k);
        }
      const std::int64_t base = persistent_.bytes(static_cast<Tier>(t));
      program_.persistent_bytes[t] = base;
      program_.live_bytes[t] = largest_held(tier, alignment);
      program_.arena_bytes[t] = base + place_lifetimes(tier, alignment);
      for (std::size_t k = 0; k < tier.size(); ++k)
        lifetimes_[index[k]].offset_bytes = base + tier[k].offset_bytes;
    }
  }

  std::optional<Shortage> place_scheduled(const Scheduling& scheduling) {
    TierBytes persistent{};
    for (const Tier tier : kAllTiers)
      persistent[static_cast<std::size_t>(tier)] = persistent_.bytes(tier);
    const ScheduledGraph scheduled =
        schedule_graph(graph_, workspaces_, options_.machine, scheduling, persistent);
    if (const std::optional<Tier> tier = scheduled.short_tier) {
      const auto t = static_cast<std::size_t>(*tier);
      return Shortage{.program = options_.name,
                      .tier = *tier,
                      .budget_bytes = scheduling.budget_bytes[t],
                      .floor_bytes = scheduled.floor_bytes[t],
                      .kept_bytes = persistent};
    }
    program_.persistent_bytes = persistent;
    program_.live_bytes = scheduled.live_bytes;
    program_.is_scheduled = true;
    program_.foreseen_ns = scheduled.makespan_ns;
    for (std::size_t t = 0; t < persistent.size(); ++t)
      program_.arena_bytes[t] = persistent[t] + scheduled.region_bytes[t];
    for (const auto& [root, offset_bytes] : scheduled.offset_bytes) {
      lifetime_of_[root] = lifetimes_.size();
      const auto t = static_cast<std::size_t>(graph_.values[root].tier);
      lifetimes_.push_back(
          {.bytes = graph_.bytes(root), .offset_bytes = persistent[t] + offset_bytes});
    }
    return {};
  }

  [[nodiscard]] std::int64_t place_of(ValueId root) const {
    const Value& whole = graph_.values[root];
    switch (whole.storage) {
      case Storage::transient:
        return lifetimes_[lifetime_of_.at(root)].offset_bytes;
      case Storage::handed_on:
        return persistent_.bytes(whole.tier) + whole.place_bytes;
      case Storage::persistent:
        break;
    }
    return persistent_.find(whole.name).offset_bytes;
  }

  Operand operand(ValueId id) const {
    const Value& value = graph_.values[id];
    return {value.type, value.tier, place_of(graph_.root_of(id)) + value.offset_bytes,
            value.type.span_bytes(), id};
  }

  Program finish() {
    emit();
    place_waits(program_);
    return std::move(program_);
  }

  void emit() {
    program_.name = options_.name;
    program_.blocks = graph_.blocks;
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      Instruction in;
      in.operation = node.operation;
      in.attributes = node.attributes;
      in.queue = queue_of(node, options_.machine.host_is_device());
      in.on_host = node.queue == Queue::host;
      for (ValueId id : node.inputs) in.inputs.push_back(operand(id));
      for (ValueId id : node.outputs) in.outputs.push_back(operand(id));
      if (workspaces_[i] != kNoValue) in.workspace = operand(workspaces_[i]);
      if (node.predicate != kNoValue) in.predicate = operand(node.predicate);
      in.collective = node.collective;
      in.demand = node.demand;
      in.block = node.block;
      in.pass = node.pass;
      in.label = node.label;
      program_.instructions.push_back(std::move(in));
    }
    program_.values = std::move(graph_.values);
  }

  Graph graph_;
  const PersistentLayout& persistent_;
  const LowerOptions& options_;
  Program program_;
  std::vector<ValueId> workspaces_;             // one per node
  std::vector<Lifetime> lifetimes_;             // one per transient root, in list positions
  std::vector<ValueId> roots_;                  // one per lifetime
  std::map<ValueId, std::size_t> lifetime_of_;  // root -> lifetime
};

}  // namespace

Program lower(Graph graph, const PersistentLayout& persistent, const LowerOptions& options) {
  return Lowering(std::move(graph), persistent, options).run();
}

std::variant<Program, Shortage> lower_scheduled(Graph graph, const PersistentLayout& persistent,
                                                const LowerOptions& options,
                                                const Scheduling& scheduling) {
  return Lowering(std::move(graph), persistent, options).run(scheduling);
}

}  // namespace strata::runtime
