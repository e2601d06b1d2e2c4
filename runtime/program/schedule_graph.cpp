#include "runtime/program/schedule_graph.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/program/arena_alignment.h"
#include "runtime/program/program.h"
#include "runtime/schedule/place_lifetimes.h"

namespace strata::runtime {
namespace {

/// Applies the answer to a Graph's scheduling problem to the Graph.
class ScheduledOrder {
 public:
  ScheduledOrder(Graph& graph, std::vector<ValueId>& workspaces, const GraphProblem& problem,
                 const Schedule& schedule)
      : graph_(graph), workspaces_(workspaces), problem_(problem), schedule_(schedule) {}

  ScheduledGraph run() {
    ScheduledGraph result;
    result.makespan_ns = schedule_.makespan_ns;
    for (const auto& [root, buffer] : problem_.buffer_of)
      result.offset_bytes[root] = schedule_.offset_bytes[static_cast<std::size_t>(buffer)];
    for (int t = 0; t < kTiers; ++t)
      result.region_bytes[static_cast<std::size_t>(t)] =
          schedule_.arena_bytes[static_cast<std::size_t>(t)];
    find_live_bytes(result);
    keep_survivors();
    reorder();
    return result;
  }

 private:
  [[nodiscard]] const Value& value(ValueId id) const {
    return graph_.values[static_cast<std::size_t>(id)];
  }

  /// Returns, per buffer, the first copy that shares its memory.
  [[nodiscard]] std::vector<std::size_t> first_copies() const {
    std::vector<std::size_t> first(problem_.problem.buffers.size());
    std::iota(first.begin(), first.end(), std::size_t{0});
    for (std::size_t g = 0; g < schedule_.survives.size(); ++g) {
      const ScheduleGap& gap = problem_.problem.gaps[g];
      if (schedule_.survives[g])
        first[static_cast<std::size_t>(gap.after)] = static_cast<std::size_t>(gap.before);
    }
    for (std::size_t& copy : first)
      while (first[copy] != copy) copy = first[copy];
    return first;
  }

  /// Finds the largest number of bytes in use at one time, per tier. Lives are stretches of the
  /// list: a buffer is in use until the first instruction that starts when its last user has ended.
  void find_live_bytes(ScheduledGraph& result) const {
    const auto count = static_cast<int>(schedule_.order.size());
    std::vector<int> place(problem_.problem.tasks.size(), -1);
    for (int i = 0; i < count; ++i)
      place[static_cast<std::size_t>(schedule_.order[static_cast<std::size_t>(i)])] = i;
    const auto first_after = [&](std::int64_t end) {
      const auto at = std::partition_point(
          schedule_.order.begin(), schedule_.order.end(),
          [&](int task) { return schedule_.start_ns[static_cast<std::size_t>(task)] < end; });
      return static_cast<int>(at - schedule_.order.begin());
    };
    const std::vector<std::size_t> first_copy = first_copies();
    for (const Tier tier : kAllTiers) {
      const auto t = static_cast<std::size_t>(tier);
      std::map<std::size_t, Lifetime> of_copy;  // keyed by first copy in the same memory
      for (const auto& [root, buffer] : problem_.buffer_of) {
        const ScheduleBuffer& b = problem_.problem.buffers[static_cast<std::size_t>(buffer)];
        if (b.tier != static_cast<int>(tier)) continue;
        Lifetime& life = of_copy
                             .try_emplace(first_copy[static_cast<std::size_t>(buffer)],
                                          Lifetime{b.bytes, count, 0})
                             .first->second;
        for (int user : b.users) {
          const auto u = static_cast<std::size_t>(user);
          if (place[u] < 0) continue;
          life.begin = std::min<std::int64_t>(life.begin, place[u]);
          life.end =
              std::max<std::int64_t>({life.end, place[u] + 1, first_after(schedule_.end_ns[u])});
        }
      }
      std::vector<Lifetime> lifetimes;
      for (const auto& [copy, life] : of_copy)
        if (life.begin < life.end) lifetimes.push_back(life);
      for (int window : problem_.windows) {
        const ScheduleBuffer& b = problem_.problem.buffers[static_cast<std::size_t>(window)];
        if (b.tier != static_cast<int>(tier)) continue;
        const auto user = static_cast<std::size_t>(b.kept ? b.users.front() : b.users.back());
        lifetimes.push_back({b.bytes, b.kept ? place[user] : 0, b.kept ? count : place[user] + 1});
      }
      result.live_bytes[t] = largest_held(lifetimes, alignment_of(tier));
    }
  }

  /// Lets readers of a later copy read the earlier one that survived.
  void keep_survivors() {
    std::map<ValueId, GraphProblem::Copy> instead;
    for (std::size_t g = 0; g < problem_.gap_copies.size(); ++g) {
      if (!schedule_.survives[g]) continue;
      const auto [before, after] = problem_.gap_copies[g];
      const auto earlier = instead.find(before.root);
      instead[after] = earlier == instead.end() ? before : earlier->second;
    }
    if (instead.empty()) return;
    const auto redirect = [&](ValueId id) {
      const auto at = instead.find(graph_.root_of(id));
      if (at == instead.end()) return id;
      const Value view = value(id);
      const GraphProblem::Copy& copy = at->second;
      const ValueId now = graph_.add_view(copy.root, view.offset_bytes, view.type, view.name);
      graph_.values[static_cast<std::size_t>(now)].version = copy.version;
      return now;
    };
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (schedule_.start_ns[i] < 0) continue;
      for (ValueId& in : graph_.nodes[i].inputs) in = redirect(in);
    }
  }

  void reorder() {
    std::vector<Node> nodes;
    std::vector<ValueId> workspaces;
    for (int i : schedule_.order) {
      nodes.push_back(std::move(graph_.nodes[static_cast<std::size_t>(i)]));
      workspaces.push_back(workspaces_[static_cast<std::size_t>(i)]);
    }
    graph_.nodes = std::move(nodes);
    workspaces_ = std::move(workspaces);
  }

  Graph& graph_;
  std::vector<ValueId>& workspaces_;
  const GraphProblem& problem_;
  const Schedule& schedule_;
};

}  // namespace

bool has_transfers(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    return node.purpose == TransferPurpose::fetch || node.queue == Queue::download ||
           node.queue == Queue::disk_write;
  });
}

ScheduledGraph schedule_graph(Graph& graph, std::vector<ValueId>& workspaces,
                              const machine::Machine& machine, const Scheduling& scheduling,
                              const TierBytes& persistent_bytes) {
  const GraphProblem problem =
      pose_problem(graph, workspaces, machine, scheduling, persistent_bytes);
  const Schedule schedule = make_schedule(problem.problem);
  ScheduledGraph scheduled;
  if (schedule.short_tier)
    scheduled.short_tier = static_cast<Tier>(*schedule.short_tier);
  else
    scheduled = ScheduledOrder(graph, workspaces, problem, schedule).run();
  for (std::size_t t = 0; t < persistent_bytes.size(); ++t)
    scheduled.floor_bytes[t] = persistent_bytes[t] + schedule.floor_bytes[t];
  return scheduled;
}

}  // namespace strata::runtime
