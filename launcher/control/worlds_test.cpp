#include "launcher/control/worlds.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

using Ranks = std::vector<int>;

std::optional<Ranks> placed(const Worlds& worlds, const Ranks& slots) {
  return worlds.place(slots);
}

TEST(Worlds, AllSlotsAreUsedUntilRankZeroSaysOtherwise) {
  Worlds worlds({});
  EXPECT_FALSE(worlds.are_said() || worlds.may_grow());
  EXPECT_EQ(placed(worlds, {2, 3}), (Ranks{2, 3}));
  worlds.admit({{8, 1, 4, 2}});
  EXPECT_TRUE(worlds.are_said() && worlds.may_grow());
  EXPECT_EQ(placed(worlds, {2, 3}), (Ranks{2, 2}));
  EXPECT_EQ(placed(worlds, {1, 1, 1}), (Ranks{1, 1, 0}));
  EXPECT_EQ(placed(worlds, {3, 3, 3}), (Ranks{3, 3, 2}));
  EXPECT_EQ(worlds.describe(), "1, 2, 4 or 8 ranks");
}

TEST(Worlds, ARangeBoundsThem) {
  Worlds worlds({.least = 2, .most = 5});
  EXPECT_EQ(placed(worlds, {4, 4}), (Ranks{4, 1}));
  EXPECT_EQ(placed(worlds, {1}), std::nullopt);
  worlds.admit({{1, 4, 6}});
  EXPECT_EQ(placed(worlds, {4, 4}), (Ranks{4, 0}));
  EXPECT_EQ(placed(worlds, {3}), std::nullopt);
  EXPECT_EQ(placed(worlds, {}), std::nullopt);
  EXPECT_EQ(worlds.describe(), "4 ranks");
  worlds.admit({{1, 6}});
  EXPECT_EQ(placed(worlds, {4, 4}), std::nullopt);
}

TEST(Worlds, SoManyHostsAsAreNeededHaveRanks) {
  Worlds worlds({}, 2);
  worlds.admit({{1, 2, 4}});
  EXPECT_EQ(placed(worlds, {4}), std::nullopt) << "one host";
  EXPECT_EQ(placed(worlds, {4, 1}), (Ranks{3, 1}));
  EXPECT_EQ(placed(worlds, {3, 3, 3}), (Ranks{3, 1, 0}));
  worlds.admit({{1, 2}});
  EXPECT_EQ(placed(worlds, {2, 2}), (Ranks{1, 1}));
  EXPECT_EQ(worlds.describe(), "2 ranks") << "one rank would be on one host";
  worlds.admit({{1}});
  EXPECT_EQ(placed(worlds, {2, 2}), std::nullopt);
}

TEST(Worlds, WhatRankZeroSaysIsReadStrictly) {
  EXPECT_EQ(parse_worlds("1 2 16"), (Worlds::Said{{1, 2, 16}, true}));
  EXPECT_EQ(parse_worlds("keep 1 2"), (Worlds::Said{{1, 2}, false}));
  EXPECT_EQ(parse_worlds(""), (Worlds::Said{{}, true}));
  for (const char* text :
       {"0", "-1", "1 ", " 1", "1  2", "1,2", "x", "keep", "keep1", "99999999999"})
    EXPECT_EQ(parse_worlds(text), std::nullopt) << text;
}

}  // namespace
}  // namespace strata::launcher
