#include "offload/copy_content.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace strata::offload {
namespace {

using runtime::kNoValue;

constexpr runtime::ValueId kPredicate = 5, kOther = 6;

/// Formats pieces as "[0,8) v1, [8,12) v2 if".
std::string text(const std::vector<VersionedRange>& pieces) {
  std::string all;
  for (const VersionedRange& piece : pieces)
    all += (all.empty() ? "[" : ", [") + std::to_string(piece.bytes.begin) + "," +
           std::to_string(piece.bytes.end) + ") v" + std::to_string(piece.version) +
           (piece.conditional ? " if" : "");
  return all;
}

TEST(CopyContent, BringsWhatIsReadOnce) {
  CopyContent copy({0, 100}, 3);
  copy.read({10, 30}, false, 3, kNoValue);
  copy.read({20, 40}, false, 3, kNoValue);
  EXPECT_EQ(text(copy.brought()), "[10,30) v3, [30,40) v3");
  copy.merge();
  EXPECT_EQ(text(copy.brought()), "[10,40) v3");
  EXPECT_TRUE(copy.written().empty());
}

TEST(CopyContent, BringsTheRestAlongWhereAllComesTogether) {
  CopyContent copy({0, 100}, 0);
  copy.write({40, 60}, 1, kNoValue);
  copy.read({0, 10}, true, 0, kNoValue);
  EXPECT_EQ(text(copy.brought()), "[0,40) v0, [60,100) v0");
}

TEST(CopyContent, DoesNotBringWhatWasWrittenHere) {
  CopyContent copy({0, 100}, 0);
  copy.write({0, 50}, 1, kNoValue);
  copy.read({0, 60}, false, 1, kNoValue);
  EXPECT_EQ(text(copy.brought()), "[50,60) v1");
  EXPECT_EQ(text(copy.written()), "[0,50) v1");
}

TEST(CopyContent, KeepsTheLatestVersionOfEachByte) {
  CopyContent copy({0, 100}, 0);
  copy.write({0, 100}, 1, kNoValue);
  EXPECT_TRUE(copy.is_written_whole());
  copy.write({40, 60}, 2, kNoValue);
  EXPECT_EQ(text(copy.written()), "[0,40) v1, [60,100) v1, [40,60) v2");
  EXPECT_FALSE(copy.is_written_whole());
}

TEST(CopyContent, AWriteUnderAPredicateIsCertainWhereSomethingWasThere) {
  CopyContent fresh({0, 100}, 0), read({0, 100}, 0);
  fresh.write({0, 100}, 1, kPredicate);
  EXPECT_EQ(text(fresh.written()), "[0,100) v1 if");
  EXPECT_TRUE(fresh.is_written_conditionally());
  EXPECT_EQ(fresh.condition(), kPredicate);
  read.read({0, 100}, false, 0, kPredicate);
  read.write({0, 100}, 1, kPredicate);
  EXPECT_EQ(text(read.written()), "[0,100) v1");
}

TEST(CopyContent, WhoReadsWithoutThePredicateNeedsWhatWasThereBefore) {
  for (const runtime::ValueId condition : {kPredicate, kOther, kNoValue}) {
    CopyContent copy({0, 100}, 4);
    copy.write({0, 100}, 5, kPredicate);
    copy.read({10, 20}, false, 5, condition);
    const bool same = condition == kPredicate;
    EXPECT_EQ(text(copy.brought()), same ? "" : "[0,100) v4");
    EXPECT_EQ(text(copy.written()), same ? "[0,100) v5 if" : "[0,100) v5");
  }
}

TEST(CopyContent, WhereAllIsBroughtNothingIsConditional) {
  CopyContent copy({0, 100}, 2);
  copy.write({0, 50}, 3, kPredicate);
  copy.bring_all();
  EXPECT_EQ(text(copy.brought()), "[0,100) v2");
  EXPECT_EQ(text(copy.written()), "[0,50) v3");
}

}  // namespace
}  // namespace strata::offload
