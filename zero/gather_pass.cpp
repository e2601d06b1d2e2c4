#include <algorithm>
#include <map>

#include "core/check.h"
#include "runtime/collective_node.h"
#include "runtime/node_inserter.h"
#include "runtime/state_names.h"
#include "zero/partition.h"
#include "zero/passes.h"

namespace strata::zero {
namespace {

using runtime::Graph;
using runtime::kNoValue;
using runtime::Node;
using runtime::ValueId;

/// Consecutive uses of one unit served by one gather: list positions, inclusive.
struct Region {
  int unit = 0;
  int first = 0;
  int last = 0;
  std::vector<int> nodes;
};

class GatherPass {
 public:
  GatherPass(Graph& graph, const StepSettings& settings) : graph_(graph), settings_(settings) {}

  void run() {
    find_regions();
    merge_regions();
    for (const Region& region : regions_) serve(region);
    inserter_.apply(graph_);
  }

 private:
  [[nodiscard]] bool sharded(int unit) const { return settings_.plan.units[unit].shard_parameter; }
  [[nodiscard]] std::int64_t elements(int unit) const { return graph_.units[unit].elements; }

  /// One region per unit and uninterrupted stretch of one block in one direction. (Recomputing a
  /// segment of several blocks visits each twice on the way back, far apart.)
  void find_regions() {
    std::map<ValueId, int> unit_of;
    for (std::size_t u = 0; u < graph_.units.size(); ++u)
      if (sharded(static_cast<int>(u))) unit_of[graph_.unit_values[u]] = static_cast<int>(u);
    std::map<int, std::size_t> open;  // of the stretch under way, by unit
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      const Node& node = graph_.nodes[i];
      if (i > 0 &&
          (node.block != graph_.nodes[i - 1].block || node.pass != graph_.nodes[i - 1].pass))
        open.clear();
      for (ValueId in : node.inputs) {
        const auto unit = unit_of.find(graph_.root_of(in));
        if (unit == unit_of.end()) continue;
        STRATA_CHECK(graph_.values[in].version == 0, node.label, "reads",
                     describe(graph_.values[in]),
                     "but shards are gathered as the Program finds them");
        const auto [at, fresh] = open.try_emplace(unit->second, regions_.size());
        if (fresh) regions_.push_back({unit->second, i, i, {}});
        Region& region = regions_[at->second];
        region.last = i;
        if (region.nodes.empty() || region.nodes.back() != i) region.nodes.push_back(i);
      }
    }
  }

  /// Elements of other units gathered between two regions of one unit: what a user of DeepSpeed's
  /// `max_reuse_distance` counts.
  [[nodiscard]] std::int64_t distance(const Region& a, const Region& b) const {
    std::int64_t sum = 0;
    for (const Region& other : regions_)
      if (other.unit != a.unit && other.first > a.last && other.first < b.first)
        sum += elements(other.unit);
    return sum;
  }

  /// Whether keeping `unit` between two regions stays within the live limit everywhere.
  [[nodiscard]] bool fits(const Region& a, const Region& b) const {
    for (int position = a.last + 1; position < b.first; ++position) {
      std::int64_t live = elements(a.unit);
      for (const Region& other : regions_)
        if (other.unit != a.unit && other.first <= position && position <= other.last)
          live += elements(other.unit);
      if (live > settings_.plan.limits.max_live_elements) return false;
    }
    return true;
  }

  /// Joins neighbours, nearest first, so that the live limit keeps what is needed again soonest.
  void merge_regions() {
    std::sort(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) {
      return std::pair(a.unit, a.first) < std::pair(b.unit, b.first);
    });
    while (true) {
      std::int64_t nearest = settings_.plan.limits.max_reuse_distance;
      int best = -1;
      for (std::size_t i = 0; i + 1 < regions_.size(); ++i) {
        if (regions_[i].unit != regions_[i + 1].unit) continue;
        const std::int64_t d = distance(regions_[i], regions_[i + 1]);
        if ((d < nearest || (best < 0 && d == nearest)) && fits(regions_[i], regions_[i + 1])) {
          nearest = d;
          best = static_cast<int>(i);
        }
      }
      if (best < 0) break;
      Region& a = regions_[best];
      const Region& b = regions_[best + 1];
      a.last = b.last;
      a.nodes.insert(a.nodes.end(), b.nodes.begin(), b.nodes.end());
      regions_.erase(regions_.begin() + best + 1);
    }
    std::sort(regions_.begin(), regions_.end(),
              [](const Region& a, const Region& b) { return a.first < b.first; });
  }

  /// Inserts the gather before the region and redirects its nodes to the gathered copy.
  void serve(const Region& region) {
    const runtime::ParameterUnit& unit = graph_.units[region.unit];
    const ValueId parameters = graph_.unit_values[region.unit];
    const OwnedUnit owned =
        owned_unit(unit, settings_.plan.units[region.unit], settings_.plan.world, settings_.rank);
    const ValueId shard =
        persistent_value(graph_, runtime::parameter_shard_name(unit.name),
                         {settings_.dtype, kernels::Shape{owned.owned_end - owned.owned_begin}},
                         runtime::Role::parameter);
    runtime::Value whole = graph_.values[parameters];
    whole.name = "gathered/" + unit.name;
    whole.storage = runtime::Storage::transient;
    const ValueId gathered = graph_.add_value(std::move(whole));

    const Node& first = graph_.nodes[region.first];
    for (const Extent& piece : cut(unit.elements, settings_.plan.limits.gather_bucket_elements)) {
      const Extent mine = intersect(piece, {owned.owned_begin, owned.owned_end});
      comm::Collective gather;
      gather.kind = comm::CollectiveKind::all_gather;
      gather.input_type = gather.wire_type = settings_.dtype;
      gather.partition = slice(owned.partition, piece.begin, piece.end);
      const std::int64_t start = std::max<std::int64_t>(mine.begin - owned.owned_begin, 0);
      const std::int64_t count = mine.elements();
      inserter_.before(
          region.first,
          collective_node(gather,
                          flat_view(graph_, shard, count == 0 ? 0 : start,
                                    count == 0 ? 0 : start + count, unit.name + ".own"),
                          flat_view(graph_, gathered, piece.begin, piece.end, unit.name + ".piece"),
                          first.block, first.pass, "gather " + unit.name));
    }
    std::map<ValueId, ValueId> views;
    for (int index : region.nodes)
      for (ValueId& in : graph_.nodes[index].inputs) {
        if (graph_.root_of(in) != parameters) continue;
        auto [at, fresh] = views.try_emplace(in, kNoValue);
        if (fresh) {
          const runtime::Value view = graph_.values[in];
          at->second = graph_.add_view(gathered, view.offset_bytes, view.type, view.name);
        }
        in = at->second;
      }
  }

  Graph& graph_;
  const StepSettings& settings_;
  std::vector<Region> regions_;
  runtime::NodeInserter inserter_;
};

}  // namespace

void gather_pass(runtime::Graph& graph, const StepSettings& settings) {
  GatherPass(graph, settings).run();
}

}  // namespace strata::zero
