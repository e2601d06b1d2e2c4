#include "zero/partition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/graph/parameter_unit.h"

namespace strata::zero {
namespace {

using runtime::kCellElements;

constexpr int kMostCells = 20;
constexpr int kMostRanks = 9;

TEST(Partition, CoversEveryElementOnceAtCellBorders) {
  for (int cells = 0; cells <= kMostCells; ++cells)
    for (int world = 1; world <= kMostRanks; ++world) {
      const comm::Partition p = partition_unit(cells * kCellElements, world);
      ASSERT_EQ(p.ranks(), world);
      EXPECT_EQ(p.begin(0), 0);
      EXPECT_EQ(p.total(), cells * kCellElements);
      for (int r = 0; r < world; ++r) {
        EXPECT_GE(p.count(r), 0) << cells << " cells, rank " << r << " of " << world;
        EXPECT_EQ(p.begin(r) % kCellElements, 0);
      }
    }
}

std::vector<std::int64_t> bounds_in_cells(std::int64_t cells, int world) {
  std::vector<std::int64_t> bounds;
  for (const std::int64_t bound : partition_unit(cells * kCellElements, world).bounds)
    bounds.push_back(bound / kCellElements);
  return bounds;
}

// Checkpoints, Plans and the bits of a run depend on these very borders.
TEST(Partition, BordersAreTheDocumentedOnes) {
  using Bounds = std::vector<std::int64_t>;
  EXPECT_EQ(bounds_in_cells(7, 3), (Bounds{0, 2, 4, 7}));
  EXPECT_EQ(bounds_in_cells(5, 4), (Bounds{0, 1, 2, 3, 5}));
  EXPECT_EQ(bounds_in_cells(3, 8), (Bounds{0, 0, 0, 1, 1, 1, 2, 2, 3}));
  EXPECT_EQ(bounds_in_cells(1, 2), (Bounds{0, 0, 1}));
  for (int cells = 0; cells <= kMostCells; ++cells)
    for (int world = 1; world <= kMostRanks; ++world)
      for (int r = 0; r <= world; ++r)
        EXPECT_EQ(bounds_in_cells(cells, world)[static_cast<std::size_t>(r)], r * cells / world);
}

TEST(Partition, TellsTheShardOfOneRankAlone) {
  for (int cells = 0; cells <= kMostCells; ++cells)
    for (int world = 1; world <= kMostRanks; ++world) {
      const comm::Partition p = partition_unit(cells * kCellElements, world);
      for (int r = 0; r < world; ++r)
        EXPECT_EQ(shard_of(cells * kCellElements, world, r),
                  (ElementRange{p.begin(r), p.begin(r) + p.count(r)}));
    }
}

TEST(Partition, KnowsItsLargestShard) {
  for (int cells = 0; cells <= kMostCells; ++cells)
    for (int world = 1; world <= kMostRanks; ++world) {
      const comm::Partition p = partition_unit(cells * kCellElements, world);
      std::int64_t largest = 0;
      for (int r = 0; r < world; ++r) largest = std::max(largest, p.count(r));
      EXPECT_EQ(largest_shard(cells * kCellElements, world), largest);
    }
}

TEST(Partition, GivesRanksSharesThatDifferByAtMostOneCell) {
  for (int cells = 0; cells <= kMostCells; ++cells)
    for (int world = 1; world <= kMostRanks; ++world) {
      const comm::Partition p = partition_unit(cells * kCellElements, world);
      for (int r = 0; r < world; ++r) {
        EXPECT_GE(p.count(r), cells / world * kCellElements);
        EXPECT_LE(p.count(r), (cells + world - 1) / world * kCellElements);
      }
    }
}

TEST(Partition, EndsTheProcessForElementsThatAreNotWholeCells) {
  EXPECT_DEATH(partition_unit(kCellElements + 1, 2), "broken invariant");
  EXPECT_DEATH(partition_unit(kCellElements, 0), "broken invariant");
}

/// Returns the rank that owns flat element `at`.
int owner(const comm::Partition& p, std::int64_t at) {
  for (int r = 0; r < p.ranks(); ++r)
    if (at >= p.begin(r) && at < p.begin(r) + p.count(r)) return r;
  return -1;
}

TEST(Slice, KeepsEveryOwnerAndStartsAtZero) {
  for (int cells = 0; cells <= 7; ++cells)
    for (int world = 1; world <= 5; ++world) {
      const comm::Partition whole = partition_unit(cells * kCellElements, world);
      for (int first = 0; first <= cells; ++first)
        for (int last = first; last <= cells; ++last) {
          const std::int64_t begin = first * kCellElements, end = last * kCellElements;
          const comm::Partition piece = slice(whole, begin, end);
          ASSERT_EQ(piece.ranks(), world);
          EXPECT_EQ(piece.begin(0), 0);
          EXPECT_EQ(piece.total(), end - begin);
          for (std::int64_t at = begin; at < end; at += kCellElements)
            EXPECT_EQ(owner(piece, at - begin), owner(whole, at));
        }
    }
}

TEST(Cut, CoversTheRangeInPiecesOfAtMostOneBucket) {
  for (int cells = 0; cells <= kMostCells; ++cells)
    for (std::int64_t bucket = 0; bucket <= 6 * kCellElements; bucket += kCellElements / 2) {
      const std::int64_t elements = cells * kCellElements;
      std::int64_t end = 0;
      for (const ElementRange& piece : cut(elements, bucket)) {
        EXPECT_EQ(piece.begin, end);
        EXPECT_EQ(piece.begin % kCellElements, 0);
        EXPECT_GT(piece.elements(), 0);
        EXPECT_LE(piece.elements(), std::max(bucket, kCellElements));
        end = piece.end;
      }
      EXPECT_EQ(end, elements);
    }
}

TEST(Cut, MakesNoMorePiecesThanTheBucketAsksFor) {
  EXPECT_EQ(cut(8 * kCellElements, 3 * kCellElements).size(), 3u);
  EXPECT_EQ(cut(8 * kCellElements, 8 * kCellElements).size(), 1u);
  EXPECT_EQ(cut(8 * kCellElements, INT64_MAX).size(), 1u);
  EXPECT_TRUE(cut(0, kCellElements).empty());
}

TEST(Intersect, HoldsWhatBothHoldAndNothingElse) {
  constexpr int kEnd = 6;
  for (int a = 0; a <= kEnd; ++a)
    for (int b = a; b <= kEnd; ++b)
      for (int c = 0; c <= kEnd; ++c)
        for (int d = c; d <= kEnd; ++d) {
          const ElementRange both = intersect({a, b}, {c, d});
          EXPECT_EQ(both, intersect({c, d}, {a, b})) << a << b << c << d;
          EXPECT_GE(both.elements(), 0);
          for (int x = 0; x < kEnd; ++x)
            EXPECT_EQ(x >= both.begin && x < both.end, x >= a && x < b && x >= c && x < d)
                << x << " in [" << a << ", " << b << ") and [" << c << ", " << d << ")";
        }
}

}  // namespace
}  // namespace strata::zero
