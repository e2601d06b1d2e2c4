// Checks gathered parameters against the Plan's limits, on whole lowered steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/passes/autodiff.h"
#include "runtime/testing/small_model.h"
#include "step/step.h"
#include "zero/policy.h"

namespace strata::step {
namespace {

using runtime::Graph;
using runtime::TransferLimits;
using runtime::ValueId;

constexpr int kLayers = 5;

StepSettings settings_of(const Graph& graph, int world, const TransferLimits& limits) {
  StepSettings settings;
  settings.plan.mesh = comm::data_mesh(world);
  settings.plan.units = zero::plan_units(graph.units, {3, 0, INT64_MAX}, world);
  settings.plan.limits = limits;
  return settings;
}

Graph lowered(int world, const TransferLimits& limits, bool tied = true, DType dtype = DType::f32) {
  runtime::SmallModel model = runtime::small_model({.layers = kLayers, .tied_head = tied});
  runtime::differentiate(model.graph, {});
  StepSettings settings = settings_of(model.graph, world, limits);
  for (runtime::UnitPlan& unit : settings.plan.units) unit.recipe.dtype = dtype;
  return lower_micro_step(std::move(model.graph), {model.loss}, settings,
                          zero::MicroStepKind::only);
}

/// One gathered copy: its list positions, and the elements of its pieces by position.
struct Copy {
  std::string unit;
  std::int64_t elements = 0;
  int first_use = -1;
  int last_use = -1;
  std::map<int, std::int64_t> pieces;
  [[nodiscard]] int begin() const { return pieces.begin()->first; }
};

bool is_gathered(const Graph& graph, ValueId id) {
  return graph.values[graph.root_of(id)].name.starts_with("gathered/");
}

std::vector<Copy> copies_of(const Graph& graph) {
  std::map<ValueId, Copy> copies;
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    const runtime::Node& node = graph.nodes[i];
    for (ValueId out : node.outputs)
      if (is_gathered(graph, out)) {
        const ValueId root = graph.root_of(out);
        Copy& copy = copies[root];
        copy.unit = graph.values[root].name;
        copy.elements = graph.type(root).shape.elements();
        copy.pieces[i] = graph.type(out).shape.elements();
      }
    for (ValueId in : node.inputs)
      if (is_gathered(graph, in)) {
        Copy& copy = copies.at(graph.root_of(in));  // it must be gathered before it is read
        if (copy.first_use < 0) copy.first_use = i;
        copy.last_use = i;
      }
  }
  std::vector<Copy> list;
  for (auto& [root, copy] : copies) list.push_back(copy);
  return list;
}

/// Returns the most elements of gathered copies alive at one position.
std::int64_t most_live(const Graph& graph) {
  std::int64_t most = 0;
  const auto copies = copies_of(graph);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    std::int64_t live = 0;
    for (const Copy& copy : copies)
      if (copy.begin() <= i && i <= copy.last_use) live += copy.elements;
    most = std::max(most, live);
  }
  return most;
}

/// Returns the most elements gathered ahead of their first reader while another node computes.
std::int64_t most_ahead(const Graph& graph) {
  std::int64_t most = 0;
  const auto copies = copies_of(graph);
  for (int i = 0; i < static_cast<int>(graph.nodes.size()); ++i) {
    if (graph.nodes[i].collective) continue;
    std::int64_t ahead = 0;
    for (const Copy& copy : copies)
      for (const auto& [position, elements] : copy.pieces)
        if (position < i && i < copy.first_use) ahead += elements;
    most = std::max(most, ahead);
  }
  return most;
}

std::map<std::string, int> gathers_per_unit(const Graph& graph) {
  std::map<std::string, int> count;
  for (const Copy& copy : copies_of(graph)) ++count[copy.unit];
  return count;
}

/// Returns limits under which every use has its own gather, just before it.
TransferLimits strictest() {
  TransferLimits limits;
  limits.prefetch_elements = 0;
  limits.max_reuse_distance = -1;
  return limits;
}

class GatherPass : public testing::TestWithParam<int> {};

TEST_P(GatherPass, NeverHoldsMoreThanTheLiveLimitWhenItCanBeMet) {
  const int world = GetParam();
  if (world == 1) {
    EXPECT_TRUE(copies_of(lowered(world, {})).empty());
    return;
  }
  const std::int64_t least = most_live(lowered(world, strictest()));
  const std::int64_t all = most_live(lowered(world, {}));
  ASSERT_GT(least, 0);
  ASSERT_GT(all, least);  // otherwise the limit would never bind
  for (std::int64_t bucket : {std::int64_t{1024}, std::int64_t{2048}, runtime::kUnlimited})
    for (std::int64_t limit = least; limit <= all; limit += 512) {
      TransferLimits limits;
      limits.max_live_elements = limit;
      limits.gather_bucket_elements = bucket;
      EXPECT_LE(most_live(lowered(world, limits)), limit) << "bucket " << bucket;
    }
}

TEST_P(GatherPass, GathersNoFurtherAheadThanThePrefetchLimit) {
  const int world = GetParam();
  std::int64_t before = -1;
  for (std::int64_t limit : {0, 1024, 4096, 5120, 10'000, 100'000}) {
    TransferLimits limits;
    limits.max_reuse_distance = -1;
    limits.prefetch_elements = limit;
    const std::int64_t ahead = most_ahead(lowered(world, limits));
    EXPECT_LE(ahead, limit);
    EXPECT_GE(ahead, before);  // a larger limit is used
    before = ahead;
  }
  if (world > 1) {
    EXPECT_GT(before, 10'000);
  }
}

TEST_P(GatherPass, GathersTheNextLayerWhileTheOneBeforeComputes) {
  const int world = GetParam();
  if (world == 1) return;
  TransferLimits limits;
  limits.max_reuse_distance = -1;
  limits.prefetch_elements = 5120;  // one layer's matrices and vectors
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Graph graph = lowered(world, limits, true, dtype);
    int overlapped = 0;
    for (const Copy& copy : copies_of(graph))
      for (int i = copy.begin(); i < copy.first_use; ++i)
        if (graph.nodes[i].operation->name == "linear" && copy.unit.ends_with("matrices")) {
          ++overlapped;
          break;
        }
    EXPECT_GE(overlapped, kLayers - 1) << name_of(dtype);
  }
}

/// The small model's operations read fp32.
TEST_P(GatherPass, UnitsOfAnotherTypeAreConvertedBeforeTheyAreGathered) {
  const int world = GetParam();
  const Graph graph = lowered(world, strictest(), true, DType::bf16);
  std::map<ValueId, int> readers;  // keyed by converted root
  for (const runtime::Node& node : graph.nodes)
    for (ValueId in : node.inputs) {
      const runtime::Value& root = graph.values[graph.root_of(in)];
      if (root.name.starts_with("converted/")) ++readers[graph.root_of(in)];
      if (root.role != runtime::Role::parameter || node.pass == runtime::Pass::update) continue;
      EXPECT_EQ(root.type.dtype == DType::f32, node.operation->name != "convert") << node.label;
      EXPECT_EQ(root.storage == runtime::Storage::transient, node.operation->name != "convert");
      EXPECT_TRUE(world == 1 || !root.name.starts_with("converted/") || node.collective)
          << node.label;
    }
  int conversions = 0;
  for (const runtime::Node& node : graph.nodes)
    if (node.operation->name == "convert") {
      EXPECT_GE(readers[graph.root_of(node.outputs[0])], 1) << node.label;
      EXPECT_EQ(node.attributes.integer("master"), 1) << "rounds as an update does";
      ++conversions;
    }
  // Matrices and vectors of each layer are converted in both directions.
  EXPECT_GE(conversions, 4 * kLayers);
}

TEST_P(GatherPass, ReuseJoinsTheNearestUsesFirst) {
  const int world = GetParam();
  if (world == 1) return;
  TransferLimits limits;
  limits.max_reuse_distance = runtime::kUnlimited;
  for (const auto& [unit, count] : gathers_per_unit(lowered(world, limits)))
    EXPECT_EQ(count, 1) << unit;
  limits.max_reuse_distance = -1;
  for (const auto& [unit, count] : gathers_per_unit(lowered(world, limits)))
    if (unit.starts_with("gathered/layer."))
      EXPECT_EQ(count, 2) << unit << ": once per direction, whatever reads it there";
    else
      EXPECT_GE(count, unit == "gathered/head.vectors" ? 1 : 2) << unit;

  std::vector<std::size_t> totals;
  for (std::int64_t distance = 0; distance <= 60'000; distance += 2048) {
    limits.max_reuse_distance = distance;
    const Graph graph = lowered(world, limits);
    const auto counts = gathers_per_unit(graph);
    bool joined = false;  // once a layer is near enough, all that follow it are, too
    for (int layer = 0; layer < kLayers; ++layer) {
      const int count = counts.at("gathered/layer." + std::to_string(layer) + ".matrices");
      EXPECT_FALSE(joined && count > 1) << "layer " << layer << " at distance " << distance;
      joined = joined || count == 1;
    }
    totals.push_back(copies_of(graph).size());
  }
  EXPECT_TRUE(std::is_sorted(totals.rbegin(), totals.rend()));
  EXPECT_LT(totals.back(), totals.front());
}

TEST_P(GatherPass, EveryRankGathersInTheSameOrder) {
  const int world = GetParam();
  runtime::SmallModel model = runtime::small_model({.layers = kLayers});
  runtime::differentiate(model.graph, {});
  TransferLimits limits;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t distance : {std::int64_t{0}, runtime::kUnlimited}) {
      limits.max_reuse_distance = distance;
      std::vector<std::string> expected;
      for (int rank = 0; rank < world; ++rank) {
        StepSettings settings = settings_of(model.graph, world, limits);
        for (runtime::UnitPlan& unit : settings.plan.units) unit.recipe.dtype = dtype;
        settings.at = comm::point_of(settings.plan.mesh, rank);
        std::vector<std::string> labels;
        for (const runtime::Node& node :
             lower_micro_step(model.graph, {model.loss}, settings, zero::MicroStepKind::only).nodes)
          if (node.collective)
            labels.push_back(node.label + " " + comm::describe(*node.collective));
        if (rank == 0) expected = labels;
        EXPECT_EQ(labels, expected) << "rank " << rank;
      }
    }
}

INSTANTIATE_TEST_SUITE_P(Worlds, GatherPass, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace strata::step
