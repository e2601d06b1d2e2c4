#include "offload/nvme/extent_table.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::offload {
namespace {

constexpr std::int64_t kSector = 4096;

std::vector<Extent> write(ExtentTable& table, std::int64_t offset, std::int64_t bytes,
                          bool hashed) {
  std::vector<Extent> extents;
  table.write(offset, bytes, hashed, extents);
  return extents;
}

std::vector<Extent> written(const ExtentTable& table, std::int64_t offset, std::int64_t bytes) {
  std::vector<Extent> extents;
  table.written(offset, bytes, "reader", extents);
  return extents;
}

TEST(ExtentTable, AWriteLeavesOneExtentPerBlock) {
  ExtentTable table(3 * kBlockBytes);
  const auto extents = write(table, kBlockBytes - kSector, kBlockBytes + 3 * kSector, false);
  EXPECT_EQ(extents, (std::vector<Extent>{{kBlockBytes - kSector, kSector, 0},
                                          {kBlockBytes, kBlockBytes, 0},
                                          {2 * kBlockBytes, 2 * kSector, 0}}));
  EXPECT_EQ(written(table, 0, 3 * kBlockBytes), extents);
  table.clear();
  EXPECT_TRUE(written(table, 0, 3 * kBlockBytes).empty());
}

TEST(ExtentTable, HashesFollowTheirExtentThroughSplitsAndOverwrites) {
  ExtentTable table(2 * kBlockBytes);
  table.set_hash({0, 8 * kSector, 11});  // no extent there: no effect
  for (const Extent& extent : write(table, 0, 8 * kSector, true))
    table.set_hash({extent.offset, extent.bytes, 7});
  EXPECT_FALSE(table.across(0));
  EXPECT_FALSE(table.across(8 * kSector));
  EXPECT_EQ(table.across(2 * kSector), (Extent{0, 8 * kSector, 7}));
  table.split(2 * kSector, 1, 2);
  table.split(6 * kSector, 3, 4);
  EXPECT_EQ(written(table, 0, kBlockBytes), (std::vector<Extent>{{0, 2 * kSector, 1},
                                                                 {2 * kSector, 4 * kSector, 3},
                                                                 {6 * kSector, 2 * kSector, 4}}));
  // The write replaces the middle; the ends stay.
  for (const Extent& extent : write(table, 2 * kSector, 4 * kSector, true))
    table.set_hash({extent.offset, extent.bytes, 9});
  EXPECT_EQ(written(table, 0, kBlockBytes), (std::vector<Extent>{{0, 2 * kSector, 1},
                                                                 {2 * kSector, 4 * kSector, 9},
                                                                 {6 * kSector, 2 * kSector, 4}}));
  EXPECT_EQ(write(table, 0, kBlockBytes, false).size(), 1u);
  EXPECT_EQ(written(table, 0, kBlockBytes).size(), 1u);
}

TEST(ExtentTable, WhatIsDiscardedIsNotSplit) {
  ExtentTable table(2 * kBlockBytes);
  write(table, 0, 4 * kSector, false);
  write(table, 4 * kSector, 4 * kSector, false);
  write(table, kBlockBytes, kSector, false);
  table.discard(3 * kSector, kSector);
  EXPECT_FALSE(table.across(2 * kSector));
  EXPECT_EQ(written(table, 0, 2 * kBlockBytes),
            (std::vector<Extent>{{4 * kSector, 4 * kSector, 0}, {kBlockBytes, kSector, 0}}));
}

TEST(ExtentTableDeathTest, SplitsNothingWhereTwoExtentsMeetOrNoneIs) {
  ExtentTable table(kBlockBytes);
  write(table, 0, 4 * kSector, false);
  write(table, 4 * kSector, 4 * kSector, false);
  for (const std::int64_t border : {0, 4, 8, 9})
    EXPECT_DEATH(table.split(border * kSector, 1, 2), "no extent to split at");
}

TEST(ExtentTable, RefusesToUseBytesThatAreBeingWritten) {
  ExtentTable table(kBlockBytes);
  const auto extents = write(table, 0, 4 * kSector, true);
  EXPECT_THROW(static_cast<void>(written(table, 0, 4 * kSector)), InternalError);
  EXPECT_THROW(static_cast<void>(table.across(kSector)), InternalError);
  EXPECT_THROW(write(table, 0, 4 * kSector, true), InternalError);
  table.set_hash(extents.front());
  EXPECT_EQ(written(table, 0, 4 * kSector).size(), 1u);
}

}  // namespace
}  // namespace strata::offload
