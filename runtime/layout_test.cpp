#include "runtime/layout.h"

#include <gtest/gtest.h>

#include <random>

namespace strata::runtime {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

/// `count` buffers of a step of `positions` instructions: nested lifetimes as activations have,
/// short ones as scratch has, and sizes that span three orders of magnitude.
std::vector<Interval> random_intervals(std::uint64_t seed, int count, int positions) {
  std::mt19937_64 random(seed);
  std::vector<Interval> intervals;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(random() % static_cast<std::uint64_t>(positions));
    const int length = static_cast<int>(random() % (random() % 3 == 0 ? 3u : 40u));
    const auto bytes = static_cast<std::int64_t>(random() % (1u << (6 + random() % 11)));
    intervals.push_back({bytes, first, std::min(first + length, positions - 1), 0});
  }
  return intervals;
}

void expect_apart(const std::vector<Interval>& intervals, std::int64_t size) {
  for (std::size_t a = 0; a < intervals.size(); ++a) {
    const Interval& x = intervals[a];
    EXPECT_EQ(x.offset_bytes % kArenaAlignment, 0);
    EXPECT_GE(x.offset_bytes, 0);
    EXPECT_LE(x.offset_bytes + x.bytes, size);
    for (std::size_t b = 0; b < a; ++b) {
      const Interval& y = intervals[b];
      const bool live_together = x.first <= y.last && y.first <= x.last;
      const bool overlap =
          x.offset_bytes < y.offset_bytes + y.bytes && y.offset_bytes < x.offset_bytes + x.bytes;
      ASSERT_FALSE(live_together && overlap) << a << " and " << b;
    }
  }
}

TEST(PlaceIntervals, NeverPutsTwoLiveBuffersOnOneByte) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<Interval> intervals = random_intervals(seed, 60, 50);
    const std::int64_t size = place_intervals(intervals);
    expect_apart(intervals, size);
    EXPECT_GE(size, largest_live_set(intervals, 50));
  }
}

TEST(PlaceIntervals, StaysNearTheBoundForRandomBuffers) {
  double sum = 0;
  constexpr int kSeeds = 100;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    std::vector<Interval> intervals = random_intervals(seed, 100, 80);
    sum += static_cast<double>(place_intervals(intervals)) /
           static_cast<double>(largest_live_set(intervals, 80));
  }
  EXPECT_LE(sum / kSeeds, 1.03);
}

TEST(PlaceIntervals, GivesTheSameOffsetsEveryTime) {
  std::vector<Interval> a = random_intervals(7, 100, 80), b = a;
  EXPECT_EQ(place_intervals(a), place_intervals(b));
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].offset_bytes, b[i].offset_bytes);
}

TEST(PlaceIntervals, PlacesNestedLifetimesWithoutLoss) {
  std::vector<Interval> intervals;
  for (int i = 0; i < 20; ++i) intervals.push_back({1000 + 64 * i, i, 60 - i, 0});
  EXPECT_EQ(place_intervals(intervals), largest_live_set(intervals, 61));
}

TEST(PlaceIntervals, ReusesTheStorageOfTheDead) {
  std::vector<Interval> intervals{{100, 0, 1, 0}, {100, 2, 3, 0}, {100, 4, 4, 0}};
  EXPECT_EQ(place_intervals(intervals), aligned(100));
}

TEST(PlaceIntervals, TakesNoBuffersAndEmptyOnes) {
  std::vector<Interval> none;
  EXPECT_EQ(place_intervals(none), 0);
  std::vector<Interval> empty{{0, 0, 3, 0}};
  EXPECT_EQ(place_intervals(empty), 0);
}

TEST(LargestLiveSet, CountsEachPositionOnceWithAlignedBytes) {
  EXPECT_EQ(largest_live_set({{1, 0, 0, 0}, {1, 1, 1, 0}}, 2), 64);
  EXPECT_EQ(largest_live_set({{1, 0, 1, 0}, {65, 1, 1, 0}}, 2), 64 + 128);
  EXPECT_EQ(largest_live_set({}, 3), 0);
}

/// start (persistent) -> copy -> add -> add; each add may take its first input's storage.
TEST(AliasInPlace, TakesTheStorageOfAnInputThatNobodyReadsLater) {
  Graph graph;
  graph.blocks = {"block"};
  Value value;
  value.name = "start";
  value.type = kernels::TensorType(DType::f32, kernels::Shape{16});
  value.storage = Storage::persistent;
  const ValueId start = graph.add_value(value);
  const auto apply = [&](const char* operation, std::vector<ValueId> inputs) {
    return graph.apply(operation, std::move(inputs), {}, 0, Pass::forward, operation).front();
  };
  const ValueId a = apply("copy", {start});
  const ValueId b = apply("add", {a, start});  // a is read again below
  const ValueId c = apply("add", {b, a});      // b is not
  const ValueId d = apply("add", {start, c});  // persistent storage is never taken
  alias_in_place(graph);
  EXPECT_EQ(graph.root_of(b), b);
  EXPECT_EQ(graph.root_of(c), b);
  EXPECT_EQ(graph.root_of(d), d);
}

}  // namespace
}  // namespace strata::runtime
