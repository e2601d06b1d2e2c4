#include "zero/gather_pass.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/check.h"
#include "runtime/graph/collective_node.h"
#include "runtime/graph/node_inserter.h"
#include "runtime/graph/persistent_values.h"
#include "runtime/graph/state_names.h"
#include "zero/partition.h"

namespace strata::zero {
namespace {

using runtime::Graph;
using runtime::kNoValue;
using runtime::Node;
using runtime::ValueId;

/// Consecutive uses of one unit that share a gathered or converted value: list positions,
/// inclusive.
struct Region {
  int unit = 0;
  int first = 0;
  int last = 0;
  std::vector<int> nodes;
};

class GatherPass {
 public:
  GatherPass(Graph& graph, const RankPlan& of) : graph_(graph), of_(of) {}

  void run() {
    find_regions();
    merge_regions();
    for (const Region& region : regions_) serve(region);
    inserter_.apply(graph_);
  }

 private:
  [[nodiscard]] bool sharded(int unit) const { return of_.plan.units[unit].shard_parameter; }
  [[nodiscard]] bool converted(int unit) const {
    return of_.plan.units[unit].recipe.dtype != graph_.type(graph_.unit_values[unit]).dtype;
  }
  /// Returns the number of elements that a gather of the unit makes available.
  [[nodiscard]] std::int64_t gathered_elements(int unit) const {
    return sharded(unit) ? graph_.units[unit].elements : 0;
  }

  /// Makes one region per unit and uninterrupted stretch of one block in one direction. (If a run
  /// of several blocks is recomputed, the backward pass visits each twice, far apart.)
  void find_regions() {
    std::map<ValueId, int> unit_of;
    for (std::size_t u = 0; u < graph_.units.size(); ++u)
      if (const int unit = static_cast<int>(u); sharded(unit) || converted(unit))
        unit_of[graph_.unit_values[u]] = unit;
    std::map<int, std::size_t> open;  // region of the current stretch, by unit
    for (int i = 0; i < static_cast<int>(graph_.nodes.size()); ++i) {
      const Node& node = graph_.nodes[i];
      if (i > 0 && !same_stretch(i - 1, i)) open.clear();
      for (ValueId in : node.inputs) {
        const auto unit = unit_of.find(graph_.root_of(in));
        if (unit == unit_of.end()) continue;
        STRATA_CHECK(graph_.values[in].version == 0, node.label, "reads",
                     describe(graph_.values[in]), "but copies are made of what the Program finds");
        const auto [at, fresh] = open.try_emplace(unit->second, regions_.size());
        if (fresh) regions_.push_back({unit->second, i, i, {}});
        Region& region = regions_[at->second];
        region.last = i;
        if (region.nodes.empty() || region.nodes.back() != i) region.nodes.push_back(i);
      }
    }
  }

  /// The gap between two uses of a unit, for the cost of keeping the unit gathered.
  struct Gap {
    std::size_t before;       ///< the region before the gap; the next one follows it
    std::size_t from, until;  ///< range of regions, by begin, that begin inside it
  };

  /// Joins neighbours, nearest first, so that the live limit keeps what is needed again soonest.
  /// The distance between two uses counts elements of other units gathered between them, like
  /// DeepSpeed's `max_reuse_distance`. Each join reduces other distances, but leaves less memory.
  void merge_regions() {
    std::sort(regions_.begin(), regions_.end(), [](const Region& a, const Region& b) {
      return std::pair(a.unit, a.first) < std::pair(b.unit, b.first);
    });
    count_live();
    std::vector<bool> joined(regions_.size(), false);  // true if joined with the region before
    std::vector<std::size_t> by_first(regions_.size());
    std::iota(by_first.begin(), by_first.end(), std::size_t{0});
    std::sort(by_first.begin(), by_first.end(),
              [&](std::size_t a, std::size_t b) { return regions_[a].first < regions_[b].first; });
    std::vector<Gap> gaps = find_gaps(by_first);
    std::vector<std::int64_t> begun(regions_.size() + 1, 0);  // elements gathered before a region
    while (!gaps.empty()) {
      for (std::size_t k = 0; k < by_first.size(); ++k)
        begun[k + 1] =
            begun[k] + (joined[by_first[k]] ? 0 : gathered_elements(regions_[by_first[k]].unit));
      const auto distance = [&](const Gap& gap) { return begun[gap.until] - begun[gap.from]; };
      const auto nearest =
          std::min_element(gaps.begin(), gaps.end(),
                           [&](const Gap& a, const Gap& b) { return distance(a) < distance(b); });
      if (distance(*nearest) > of_.plan.limits.max_reuse_distance) break;
      joined[nearest->before + 1] = keep(nearest->before);
      gaps.erase(nearest);
    }
    join(joined);
  }

  /// Counts the gathered elements at every position if each use has its own gather.
  void count_live() {
    live_.assign(graph_.nodes.size(), 0);
    for (const Region& region : regions_)
      for (int i = region.first; i <= region.last; ++i) live_[i] += gathered_elements(region.unit);
  }

  [[nodiscard]] std::vector<Gap> find_gaps(const std::vector<std::size_t>& by_first) const {
    const auto begins_before = [&](int position) {
      return static_cast<std::size_t>(
          std::partition_point(by_first.begin(), by_first.end(),
                               [&](std::size_t r) { return regions_[r].first < position; }) -
          by_first.begin());
    };
    std::vector<Gap> gaps;
    for (std::size_t i = 0; i + 1 < regions_.size(); ++i)
      if (regions_[i].unit == regions_[i + 1].unit && sharded(regions_[i].unit))
        gaps.push_back(
            {i, begins_before(regions_[i].last + 1), begins_before(regions_[i + 1].first)});
    return gaps;
  }

  /// Keeps a unit between region `before` and the next one, if that stays within the live limit
  /// everywhere. If it does not fit now it never will: other units only take more memory.
  bool keep(std::size_t before) {
    const std::int64_t more = gathered_elements(regions_[before].unit);
    const auto begin = live_.begin() + regions_[before].last + 1;
    const auto end = live_.begin() + regions_[before + 1].first;
    if (std::any_of(begin, end, [&](std::int64_t live) {
          return live + more > of_.plan.limits.max_live_elements;
        }))
      return false;
    for (auto at = begin; at < end; ++at) *at += more;
    return true;
  }

  void join(const std::vector<bool>& joined) {
    std::vector<Region> regions;
    for (std::size_t i = 0; i < regions_.size(); ++i) {
      if (!joined[i]) {
        regions.push_back(std::move(regions_[i]));
        continue;
      }
      Region& whole = regions.back();
      whole.last = regions_[i].last;
      whole.nodes.insert(whole.nodes.end(), regions_[i].nodes.begin(), regions_[i].nodes.end());
    }
    std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) {
      return std::pair(a.first, a.unit) < std::pair(b.first, b.unit);
    });
    regions_ = std::move(regions);
  }

  /// Makes the gathered or converted unit, a transient value, before the first use in the region,
  /// and lets the region's nodes read it.
  void serve(const Region& region) {
    const auto u = static_cast<std::size_t>(region.unit);
    const ValueId parameters = graph_.unit_values[u];
    const ValueId kept = kept_parameters(graph_, u, of_);
    runtime::Value whole = graph_.values[parameters];
    whole.tier = runtime::Tier::device;
    whole.name = (sharded(region.unit) ? "gathered/" : "converted/") + graph_.units[u].name;
    whole.storage = runtime::Storage::transient;
    const ValueId copy = graph_.add_value(std::move(whole));
    if (sharded(region.unit))
      gather(region, converted(region.unit) ? converted_shard(region, kept) : kept, copy);
    else
      convert(region, kept, copy, region.first);
    redirect(region, parameters, copy);
  }

  /// Converts this rank's shard early enough that the gather may run while the block before
  /// computes. Ranks with an empty shard do so, too, so that all of them order their gathers alike.
  ValueId converted_shard(const Region& region, ValueId shard) {
    runtime::Value part = graph_.values[shard];
    part.type.dtype = graph_.type(graph_.unit_values[region.unit]).dtype;
    part.tier = runtime::Tier::device;
    part.name = "converted/" + part.name;
    part.storage = runtime::Storage::transient;
    const ValueId mine = graph_.add_value(std::move(part));
    convert(region, shard, mine, stretch_before(region.first));
    return mine;
  }

  void convert(const Region& region, ValueId from, ValueId to, int position) {
    const Node& next = graph_.nodes[position];
    Node node;
    node.operation = &kernels::find_operation("convert");
    node.attributes = {{"dtype", static_cast<double>(graph_.type(to).dtype)}, {"master", 1}};
    node.inputs = {from};
    node.outputs = {to};
    node.block = next.block;
    node.pass = next.pass;
    node.label = "convert " + graph_.units[region.unit].name;
    inserter_.before(position, std::move(node));
  }

  [[nodiscard]] bool same_stretch(int a, int b) const {
    return graph_.nodes[a].block == graph_.nodes[b].block &&
           graph_.nodes[a].pass == graph_.nodes[b].pass;
  }

  /// Returns the begin of the stretch (of one block in one direction) just before that of
  /// `position`; 0 if there is none.
  [[nodiscard]] int stretch_before(int position) const {
    const auto begin = [&](int at) {
      while (at > 0 && same_stretch(at - 1, at)) --at;
      return at;
    };
    return begin(std::max(begin(position) - 1, 0));
  }

  void gather(const Region& region, ValueId shard, ValueId gathered) {
    const runtime::ParameterUnit& unit = graph_.units[region.unit];
    const OwnedUnit owned = owned_unit(unit, of_.plan.units[region.unit], of_);
    const comm::Partition partition = partition_unit(unit.elements, of_.plan.data_ranks());
    const Node& first = graph_.nodes[region.first];
    for (const ElementRange& piece : cut(unit.elements, of_.plan.limits.gather_bucket_elements)) {
      const ElementRange mine = intersect(piece, {owned.owned_begin, owned.owned_end});
      comm::Collective gather;
      gather.kind = comm::CollectiveKind::all_gather;
      gather.input_type = gather.wire_type = graph_.type(gathered).dtype;
      gather.partition = slice(partition, piece.begin, piece.end);
      const std::int64_t start = std::max<std::int64_t>(mine.begin - owned.owned_begin, 0);
      const std::int64_t count = mine.elements();
      Node node = collective_node(
          gather,
          runtime::flat_view(graph_, shard, count == 0 ? 0 : start, count == 0 ? 0 : start + count,
                             unit.name + ".own"),
          runtime::flat_view(graph_, gathered, piece.begin, piece.end, unit.name + ".piece"),
          first.block, first.pass, "gather " + unit.name);
      node.purpose = runtime::TransferPurpose::fetch;
      inserter_.before(region.first, std::move(node));
    }
  }

  void redirect(const Region& region, ValueId parameters, ValueId copy) {
    std::map<ValueId, ValueId> views;
    for (int index : region.nodes)
      for (ValueId& in : graph_.nodes[index].inputs) {
        if (graph_.root_of(in) != parameters) continue;
        auto [at, fresh] = views.try_emplace(in, kNoValue);
        if (fresh) {
          const runtime::Value view = graph_.values[in];
          at->second = graph_.add_view(copy, view.offset_bytes, view.type, view.name);
        }
        in = at->second;
      }
  }

  Graph& graph_;
  const RankPlan& of_;
  std::vector<Region> regions_;
  std::vector<std::int64_t> live_;  // gathered elements, by list position
  runtime::NodeInserter inserter_;
};

}  // namespace

void gather_pass(runtime::Graph& graph, const RankPlan& of) { GatherPass(graph, of).run(); }

}  // namespace strata::zero
