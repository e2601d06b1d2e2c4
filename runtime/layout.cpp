#include "runtime/layout.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/check.h"

namespace strata::runtime {
namespace {
std::int64_t room(const Interval& interval) {
  return (interval.bytes + interval.alignment - 1) / interval.alignment * interval.alignment;
}

/// Which hole a buffer takes.
enum class Fit : std::uint8_t { tightest, lowest };

/// Buffers with a larger rank are placed first.
using Rank = double (*)(const Interval&);

double lifetime(const Interval& i) { return i.last - i.first + 1; }

/// No order is best for every Program: each wins somewhere. The first is best most often.
constexpr Rank kRanks[] = {
    [](const Interval& i) { return static_cast<double>(i.bytes) * lifetime(i); },
    [](const Interval& i) { return static_cast<double>(i.bytes); },
    [](const Interval& i) { return lifetime(i); },
    [](const Interval& i) { return -static_cast<double>(i.first); },
    [](const Interval& i) { return static_cast<double>(i.last); },
};

std::vector<int> sorted_by(const std::vector<Interval>& intervals, Rank rank) {
  std::vector<int> order(intervals.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return rank(intervals[a]) > rank(intervals[b]); });
  return order;
}

/// A buffer that has its place.
struct Placed {
  std::int64_t begin, end;  // bytes
  int first, last;          // list positions
};

/// Where `bytes` fit between the buffers that live at the same time as `interval`. `placed` is
/// sorted by begin.
std::int64_t find_hole(const std::vector<Placed>& placed, const Interval& interval,
                       std::int64_t bytes, Fit fit) {
  std::int64_t end = 0, best = -1, best_hole = 0;
  for (const Placed& other : placed) {
    if (other.first > interval.last || interval.first > other.last) continue;
    const std::int64_t hole = other.begin - end;
    if (hole >= bytes && (best < 0 || hole < best_hole)) {
      best = end;
      best_hole = hole;
      if (fit == Fit::lowest || hole == bytes) break;
    }
    end = std::max(end, other.end);
  }
  return best >= 0 ? best : end;
}

std::int64_t place_in_order(std::vector<Interval>& intervals, const std::vector<int>& order,
                            Fit fit) {
  std::int64_t top = 0;
  std::vector<Placed> placed;
  placed.reserve(order.size());
  for (int i : order) {
    Interval& interval = intervals[i];
    const std::int64_t bytes = room(interval);
    const std::int64_t begin = interval.offset_bytes = find_hole(placed, interval, bytes, fit);
    top = std::max(top, begin + bytes);
    placed.insert(std::partition_point(placed.begin(), placed.end(),
                                       [&](const Placed& p) { return p.begin < begin; }),
                  {begin, begin + bytes, interval.first, interval.last});
  }
  return top;
}

/// Those that reach the top had the least choice: they choose first in the next attempt.
void promote_highest(std::vector<int>& order, const std::vector<Interval>& placed,
                     std::int64_t top) {
  std::stable_partition(order.begin(), order.end(),
                        [&](int i) { return placed[i].offset_bytes + room(placed[i]) == top; });
}

constexpr int kAttemptsPerOrder = 12;

}  // namespace

std::int64_t place_intervals(std::vector<Interval>& intervals) {
  int positions = 0;
  for (const Interval& interval : intervals) positions = std::max(positions, interval.last + 1);
  const std::int64_t bound = largest_live_set(intervals, positions);
  std::vector<Interval> best = intervals;
  std::int64_t least = -1;
  for (const Rank rank : kRanks)
    for (const Fit fit : {Fit::tightest, Fit::lowest}) {
      std::vector<int> order = sorted_by(intervals, rank);
      for (int attempt = 0; attempt < kAttemptsPerOrder && least != bound; ++attempt) {
        const std::int64_t size = place_in_order(intervals, order, fit);
        promote_highest(order, intervals, size);
        if (least >= 0 && size >= least) continue;
        least = size;
        best = intervals;
      }
    }
  intervals = std::move(best);
  return least;
}

std::int64_t largest_live_set(const std::vector<Interval>& intervals, int positions) {
  std::vector<std::int64_t> change(static_cast<std::size_t>(positions) + 1, 0);
  for (const Interval& interval : intervals) {
    change[interval.first] += room(interval);
    change[interval.last + 1] -= room(interval);
  }
  std::int64_t live = 0, largest = 0;
  for (std::int64_t delta : change) {
    live += delta;
    largest = std::max(largest, live);
  }
  return largest;
}

void alias_in_place(Graph& graph) {
  std::map<ValueId, int> first_access, last_access;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& node = graph.nodes[i];
    const auto access = [&](ValueId id) {
      first_access.try_emplace(graph.root_of(id), i);
      last_access[graph.root_of(id)] = i;
    };
    std::for_each(node.inputs.begin(), node.inputs.end(), access);
    std::for_each(node.outputs.begin(), node.outputs.end(), access);
    if (node.predicate != kNoValue) access(node.predicate);
  }
  std::vector<std::vector<ValueId>> views_of(graph.values.size());  // of a root, itself included
  for (ValueId id = 0; id < static_cast<ValueId>(graph.values.size()); ++id)
    views_of[graph.root_of(id)].push_back(id);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const Node& node = graph.nodes[i];
    for (const kernels::Alias& alias : node.operation->aliases) {
      if (alias.input >= static_cast<int>(node.inputs.size())) continue;
      const ValueId out = node.outputs[alias.output], in = node.inputs[alias.input];
      const Value& to = graph.values[out];
      const ValueId from = graph.root_of(in);
      const auto uses = [&](const std::vector<ValueId>& ids) {
        return std::count_if(ids.begin(), ids.end(),
                             [&](ValueId id) { return graph.root_of(id) == from; });
      };
      const bool possible = to.root == kNoValue && to.storage == Storage::transient &&
                            graph.values[in].offset_bytes == 0 && graph.type(in).contiguous() &&
                            graph.bytes(in) == graph.bytes(from) &&
                            graph.values[from].storage == Storage::transient &&
                            graph.values[from].tier == to.tier && first_access[out] == i &&
                            last_access[from] == i && uses(node.inputs) == 1 &&
                            uses(node.outputs) == 0 &&
                            (node.predicate == kNoValue || graph.root_of(node.predicate) != from) &&
                            graph.bytes(from) == graph.bytes(out);
      if (!possible) continue;
      // Offsets stay, for both start at the same byte; versions go on behind the input's.
      const std::int32_t first = graph.values[in].version + 1;
      for (ValueId id : views_of[out]) {
        graph.values[id].root = from;
        graph.values[id].version += first;
      }
      views_of[from].insert(views_of[from].end(), views_of[out].begin(), views_of[out].end());
      last_access[from] = last_access[out];
    }
  }
}

}  // namespace strata::runtime
