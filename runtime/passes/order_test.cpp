#include "runtime/passes/order.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "runtime/testing/small_model.h"

namespace strata::runtime {
namespace {

constexpr int kLinks = 6;
constexpr std::int64_t kElements = 1024;

std::vector<std::string> labels(const Graph& graph) {
  std::vector<std::string> list;
  for (const Node& node : graph.nodes) list.push_back(node.label);
  return list;
}

Graph hoisted(std::int64_t prefetch, std::int64_t live) {
  Graph graph = relay(kLinks, kElements, 2);
  TransferLimits limits;
  limits.prefetch_elements = prefetch;
  limits.max_live_elements = live;
  hoist_gathers(graph, limits);
  return graph;
}

TEST(HoistGathers, LeavesTheSerialOrderWithoutPrefetch) {
  EXPECT_EQ(labels(hoisted(0, 1 << 20)), labels(relay(kLinks, kElements, 2)));
}

TEST(HoistGathers, StartsEachGatherOneLinkAheadWhenOneFits) {
  EXPECT_EQ(labels(hoisted(kElements, 1 << 20)),
            (std::vector<std::string>{"gather 0", "copy start", "gather 1", "add 0", "gather 2",
                                      "add 1", "gather 3", "add 2", "gather 4", "add 3", "gather 5",
                                      "add 4", "add 5", "reduce", "keep sum"}));
}

TEST(HoistGathers, StopsAtTheLiveLimit) {
  // Only one whole parameter may be live: the next gather waits for the last reader.
  EXPECT_EQ(labels(hoisted(1 << 20, kElements)),
            (std::vector<std::string>{"gather 0", "copy start", "add 0", "gather 1", "add 1",
                                      "gather 2", "add 2", "gather 3", "add 3", "gather 4", "add 4",
                                      "gather 5", "add 5", "reduce", "keep sum"}));
}

TEST(HoistGathers, KeepsTheOrderOfGathersAndOfEverythingElse) {
  for (std::int64_t prefetch = 0; prefetch <= 8 * kElements; prefetch += kElements / 2)
    for (std::int64_t live = kElements; live <= 8 * kElements; live += kElements / 2) {
      std::vector<std::string> gathers, others;
      for (const std::string& label : labels(hoisted(prefetch, live)))
        (label.starts_with("gather") ? gathers : others).push_back(label);
      EXPECT_TRUE(std::is_sorted(gathers.begin(), gathers.end()));
      EXPECT_EQ(gathers.size(), static_cast<std::size_t>(kLinks));
      EXPECT_EQ(others, (std::vector<std::string>{"copy start", "add 0", "add 1", "add 2", "add 3",
                                                  "add 4", "add 5", "reduce", "keep sum"}));
    }
}

/// Returns the order of a relay whose nodes are all of one pass, with a collective of an update
/// before the node at `place`.
std::vector<std::string> with_update_at(int place, Pass others) {
  Graph graph = relay(2, kElements, 2);
  for (Node& node : graph.nodes) node.pass = others;
  Node publish = graph.nodes[1];
  STRATA_CHECK(publish.label == "gather 0", publish.label);
  publish.pass = Pass::update;
  publish.label = "publish";
  graph.nodes.insert(graph.nodes.begin() + place, publish);
  hoist_gathers(graph, {});
  return labels(graph);
}

TEST(HoistGathers, StaysAfterUpdatesOfTheForwardPassAndPassesThoseOfTheBackwardPass) {
  EXPECT_EQ(with_update_at(0, Pass::forward),
            (std::vector<std::string>{"publish", "gather 0", "gather 1", "copy start", "add 0",
                                      "add 1", "reduce", "keep sum"}));
  EXPECT_EQ(with_update_at(3, Pass::forward),
            (std::vector<std::string>{"gather 0", "copy start", "add 0", "publish", "gather 1",
                                      "add 1", "reduce", "keep sum"}));
  EXPECT_EQ(with_update_at(3, Pass::backward),
            (std::vector<std::string>{"gather 0", "gather 1", "copy start", "add 0", "publish",
                                      "add 1", "reduce", "keep sum"}));
}

TEST(HoistGathers, NeverPassesTheWriterOfTheShard) {
  Graph graph = relay(2, kElements, 2);
  // The shard of link 1 is written after "add 0".
  const ValueId shard = graph.nodes[3].inputs[0];
  ASSERT_EQ(graph.nodes[3].label, "gather 1");
  Node write;
  write.operation = &kernels::find_operation("copy");
  write.inputs = {graph.add_view(graph.nodes[0].outputs[0], 0, graph.type(shard), "half")};
  write.outputs = {graph.next_version(shard)};
  write.label = "write shard 1";
  graph.nodes.insert(graph.nodes.begin() + 3, write);
  hoist_gathers(graph, {});
  const auto order = labels(graph);
  const auto at = [&](const char* label) {
    return std::find(order.begin(), order.end(), label) - order.begin();
  };
  EXPECT_LT(at("write shard 1"), at("gather 1"));
  EXPECT_LT(at("gather 0"), at("copy start"));  // the other one did move
}

}  // namespace
}  // namespace strata::runtime
