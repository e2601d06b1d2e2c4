#include "runtime/program/graph_problem.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "runtime/program/arena_alignment.h"
#include "runtime/program/conflicts.h"
#include "runtime/program/program.h"

namespace strata::runtime {
namespace {

/// Two limits other than memory: elements brought before their first use, and all elements brought.
enum SoftTier : int { kAhead = kTiers, kLive };

enum ScheduledResource : int { kCores, kDisk, kResources };

bool is_gather(const Graph& graph, const Node& node) {
  return node.collective && node.purpose == TransferPurpose::fetch &&
         graph.values[static_cast<std::size_t>(graph.root_of(node.outputs[0]))].storage ==
             Storage::transient;
}

class ProblemBuilder {
 public:
  ProblemBuilder(const Graph& graph, const std::vector<ValueId>& workspaces,
                 const machine::Machine& machine, const Scheduling& scheduling,
                 const TierBytes& persistent_bytes)
      : graph_(graph),
        workspaces_(workspaces),
        machine_(machine),
        scheduling_(scheduling),
        persistent_bytes_(persistent_bytes) {}

  GraphProblem run() {
    problem_.queues = kQueues;
    problem_.resources = kResources;
    add_tiers();
    add_tasks();
    add_buffers();
    add_gaps();
    add_limits();
    return std::move(result_);
  }

 private:
  [[nodiscard]] const Value& value(ValueId id) const {
    return graph_.values[static_cast<std::size_t>(id)];
  }

  void add_tiers() {
    for (const Tier tier : kAllTiers) {
      const auto t = static_cast<std::size_t>(tier);
      const std::int64_t whole = scheduling_.budget_bytes[t];
      ScheduleTier place;
      place.name = name_of(tier);
      place.budget_bytes = whole == kUnlimited ? kUnlimited : whole - persistent_bytes_[t];
      place.alignment = alignment_of(tier);
      place.ladder = tier == Tier::device;
      problem_.tiers.push_back(std::move(place));
    }
    const auto soft = [&](const char* name, std::int64_t elements) {
      ScheduleTier limit;
      limit.name = name;
      limit.budget_bytes = elements;
      limit.alignment = 1;
      limit.soft = true;
      problem_.tiers.push_back(std::move(limit));
    };
    soft("elements brought ahead", scheduling_.limits.prefetch_elements);
    soft("elements brought", scheduling_.limits.max_live_elements);
  }

  /// Computation takes all cores of a CPU that plays the device, a transfer a part of one core.
  [[nodiscard]] std::vector<ResourceShare> shares(const Node& node) const {
    const bool disk = node.queue == Queue::disk_read || node.queue == Queue::disk_write;
    std::vector<ResourceShare> shares;
    if (disk) shares.push_back({kDisk, 1});
    if (machine_.host_is_device()) {
      const double cores = machine_.processor.cores;
      const bool computes = node.queue == Queue::compute || node.queue == Queue::host;
      shares.push_back({kCores, computes ? 1 : (disk ? 0.2 : 1) / cores});
    }
    return shares;
  }

  void add_tasks() {
    std::vector<std::vector<int>> after = find_conflicts(graph_);
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      ScheduleTask task;
      task.kind = node.purpose == TransferPurpose::fetch        ? TaskKind::in
                  : node.purpose == TransferPurpose::write_back ? TaskKind::out
                                                                : TaskKind::work;
      task.queue = static_cast<int>(queue_of(node, machine_.host_is_device()));
      task.cost_ns = machine::foreseen_ns(machine_, node.demand);
      task.shares = shares(node);
      task.after = std::move(after[i]);
      task.ordered = node.collective.has_value();
      problem_.tasks.push_back(std::move(task));
    }
    keep_common_order();
  }

  /// Keeps the list order of what all ranks compute alike: if one rank put off a gradient for
  /// reasons of its own, its peers would wait for the reduction. Updates, which differ between
  /// ranks, are exempt, and so are nodes that read reduced gradients and would hold up the rest.
  /// But an update before forward work on its queue stays before it: peers wait for its result.
  void keep_common_order() {
    const auto is_collective = [](const Node& node) { return node.collective.has_value(); };
    if (std::ranges::none_of(graph_.nodes, is_collective)) return;
    int before = -1;
    std::vector<int> updates;  // updates since `before`
    for (int i = 0; i < static_cast<int>(problem_.tasks.size()); ++i) {
      const Node& node = graph_.nodes[static_cast<std::size_t>(i)];
      if (queue_of(node, machine_.host_is_device()) != Queue::compute || copies_state(node))
        continue;
      if (node.pass == Pass::update) {
        updates.push_back(i);
        continue;
      }
      std::vector<int>& after = problem_.tasks[static_cast<std::size_t>(i)].after;
      const bool reads_reduced = std::ranges::any_of(after, [&](int other) {
        const Node& earlier = graph_.nodes[static_cast<std::size_t>(other)];
        return earlier.collective && earlier.purpose == TransferPurpose::write_back &&
               earlier.pass == Pass::backward;
      });
      if (reads_reduced) continue;
      if (before >= 0) after.push_back(before);
      if (node.pass == Pass::forward) after.insert(after.end(), updates.begin(), updates.end());
      updates.clear();
      before = i;
    }
  }

  /// True for copies for a checkpoint: only the next update of the same bytes waits for them.
  [[nodiscard]] bool copies_state(const Node& node) const {
    return std::ranges::any_of(node.outputs, [&](ValueId out) {
      return value(graph_.root_of(out)).role == Role::snapshot;
    });
  }

  template <typename Visit>
  void for_each_transient(std::size_t i, const Visit& visit) const {
    const Node& node = graph_.nodes[i];
    const auto use = [&](ValueId id) {
      const ValueId root = graph_.root_of(id);
      if (value(root).storage == Storage::transient) visit(root);
    };
    for (ValueId in : node.inputs) use(in);
    for (ValueId out : node.outputs) use(out);
    if (node.predicate != kNoValue) use(node.predicate);
    if (workspaces_[i] != kNoValue) use(workspaces_[i]);
  }

  void add_buffers() {
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i)
      for_each_transient(i, [&](ValueId root) {
        const auto [at, fresh] =
            result_.buffer_of.try_emplace(root, static_cast<int>(problem_.buffers.size()));
        if (fresh) {
          const Value& v = value(root);
          problem_.buffers.push_back({static_cast<int>(v.tier), v.type.span_bytes(), {}});
        }
        use(at->second, i);
      });
    add_windows();
  }

  void use(int buffer, std::size_t node) {
    std::vector<int>& users = problem_.buffers[static_cast<std::size_t>(buffer)].users;
    if (users.empty() || users.back() != static_cast<int>(node))
      users.push_back(static_cast<int>(node));
  }

  /// Adds the buffers of handed-on roots. Each lives twice: from the start to the last use of what
  /// the Program before left there, and from the read for the next Program to the end.
  void add_windows() {
    std::map<ValueId, int> window_of;  // root -> its buffer in use
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const auto visit = [&](ValueId id, bool fills) {
        const ValueId root = graph_.root_of(id);
        const Value& whole = value(root);
        if (whole.storage != Storage::handed_on) return;
        if (fills || !window_of.contains(root)) {
          window_of[root] = static_cast<int>(problem_.buffers.size());
          problem_.buffers.push_back({.tier = static_cast<int>(whole.tier),
                                      .bytes = whole.type.span_bytes(),
                                      .users = {},
                                      .filled_before = !fills,
                                      .kept = fills,
                                      .place_bytes = whole.place_bytes});
          result_.windows.push_back(window_of[root]);
        }
        use(window_of[root], i);
      };
      for (ValueId in : node.inputs) visit(in, false);
      for (ValueId out : node.outputs) visit(out, node.queue == Queue::disk_read);
    }
  }

  /// Adds gaps between copies of one version that are only read: the earlier one may stay.
  void add_gaps() {
    std::map<ValueId, std::vector<int>> writers;  // root -> its writers
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i)
      for (ValueId out : graph_.nodes[static_cast<std::size_t>(i)].outputs)
        writers[graph_.root_of(out)].push_back(i);
    using Original = std::tuple<ValueId, std::int32_t, std::int64_t, std::int64_t>;
    std::map<Original, GraphProblem::Copy> latest;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      const Node& node = graph_.nodes[static_cast<std::size_t>(i)];
      if (node.queue != Queue::upload || node.purpose != TransferPurpose::fetch) continue;
      const ValueId copy = graph_.root_of(node.outputs[0]);
      const ByteRange filled = range_of(graph_, node.outputs[0]);
      if (writers[copy].size() != 1 || filled.begin != 0 || filled.end != graph_.bytes(copy))
        continue;
      // Follows the hops back to where the bytes were before they left the device, or live.
      std::vector<int> ins{i};
      ValueId from = node.inputs[0];
      while (value(graph_.root_of(from)).storage == Storage::transient) {
        const std::vector<int>& fills = writers[graph_.root_of(from)];
        if (fills.size() != 1) break;
        const Node& hop = graph_.nodes[static_cast<std::size_t>(fills[0])];
        if (hop.purpose == TransferPurpose::none || hop.collective) break;
        if (hop.purpose == TransferPurpose::fetch) ins.insert(ins.begin(), fills[0]);
        from = hop.inputs[0];
      }
      const ByteRange range = range_of(graph_, from);
      const Original original{graph_.root_of(from), value(from).version, range.begin, range.end};
      const bool left_the_device = value(from).tier == Tier::device &&
                                   result_.buffer_of.contains(graph_.root_of(from)) &&
                                   range.end - range.begin == graph_.bytes(copy);
      const std::int32_t version = value(node.outputs[0]).version;
      if (left_the_device)
        latest.try_emplace(original, GraphProblem::Copy{graph_.root_of(from), value(from).version});
      if (const auto before = latest.find(original); before != latest.end()) {
        problem_.gaps.push_back(
            {result_.buffer_of.at(before->second.root), result_.buffer_of.at(copy), ins});
        result_.gap_copies.emplace_back(before->second, copy);
      }
      latest[original] = {copy, version};
    }
  }

  /// Adds the soft limits. A parameter that is gathered or uploaded counts as ahead until its first
  /// reader, and as live for as long as it stays.
  void add_limits() {
    std::map<ValueId, int> first_reader;  // root -> first reader after the transfers that fill it
    std::map<ValueId, std::vector<int>> fills;
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      const Node& node = graph_.nodes[static_cast<std::size_t>(i)];
      const bool uploads = node.queue == Queue::upload && node.purpose == TransferPurpose::fetch &&
                           value(node.outputs[0]).role == Role::parameter;
      if (is_gather(graph_, node) || uploads)
        fills[graph_.root_of(node.outputs[0])].push_back(i);
      else
        for (ValueId in : node.inputs)
          if (fills.contains(graph_.root_of(in))) first_reader.try_emplace(graph_.root_of(in), i);
    }
    for (const auto& [root, transfers] : fills) {
      const std::int64_t elements = value(root).type.shape.elements();
      ScheduleBuffer live = problem_.buffers[static_cast<std::size_t>(result_.buffer_of.at(root))];
      live.tier = kLive;
      live.bytes = elements;
      problem_.buffers.push_back(live);
      const auto reader = first_reader.find(root);
      if (reader == first_reader.end()) continue;
      for (int transfer : transfers) {
        const Node& node = graph_.nodes[static_cast<std::size_t>(transfer)];
        problem_.buffers.push_back(
            {kAhead, graph_.type(node.outputs[0]).shape.elements(), {transfer, reader->second}});
      }
    }
  }

  const Graph& graph_;
  const std::vector<ValueId>& workspaces_;
  const machine::Machine& machine_;
  const Scheduling& scheduling_;
  const TierBytes& persistent_bytes_;
  GraphProblem result_;
  ScheduleProblem& problem_ = result_.problem;
};

}  // namespace

Queue queue_of(const Node& node, bool host_is_device) {
  return node.queue == Queue::host && host_is_device ? Queue::compute : node.queue;
}

GraphProblem pose_problem(const Graph& graph, const std::vector<ValueId>& workspaces,
                          const machine::Machine& machine, const Scheduling& scheduling,
                          const TierBytes& persistent_bytes) {
  GraphProblem posed =
      ProblemBuilder(graph, workspaces, machine, scheduling, persistent_bytes).run();
  posed.problem.effort = scheduling.effort;
  return posed;
}

}  // namespace strata::runtime
