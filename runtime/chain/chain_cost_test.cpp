#include "runtime/chain/chain_cost.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::runtime {
namespace {

/// Three equal blocks of 10 us forward and 20 us backward, which hold 100 bytes at each position.
/// The link copies 1,000 bytes per kRateNs ns, so 9,765 in a forward pass.
Chain three_blocks(const ChainOption& option, std::int64_t budget_bytes) {
  Chain chain;
  chain.classes = {{option}};
  chain.blocks.assign(3, {.forward_ns = 10'000,
                          .backward_ns = 20'000,
                          .forward_base_bytes = 60,
                          .backward_base_bytes = 60,
                          .forward_working_bytes = 40,
                          .backward_working_bytes = 40});
  chain.budget_bytes = budget_bytes;
  chain.link = {976'562'500, 976'562'500};
  return chain;
}

TEST(ChainCost, OfKeptBytesIsTheirSumInTheLastBackwardPosition) {
  const ChainCost cost = chain_cost(three_blocks({.kept_bytes = 1000}, 3100), {0, 0, 0});
  EXPECT_TRUE(cost.fits);
  EXPECT_EQ(cost.extra_ns, 0);
  EXPECT_EQ(cost.peak_bytes, 3100);
  EXPECT_EQ(cost.peak_position, 3);
  EXPECT_FALSE(chain_cost(three_blocks({.kept_bytes = 1000}, 3099), {0, 0, 0}).fits);
}

TEST(ChainCost, OfRecomputationIsItsTimeAndItsWorkingSet) {
  const ChainCost cost =
      chain_cost(three_blocks({.recompute_ns = 7, .working_bytes = 500}, 600), {0, 0, 0});
  EXPECT_TRUE(cost.fits);
  EXPECT_EQ(cost.extra_ns, 21);
  EXPECT_EQ(cost.recompute_ns, 21);
  EXPECT_EQ(cost.peak_bytes, 600);
}

TEST(ChainCost, OfBytesThatLeaveInTimeIsTheWayOfTheLastBlockOutAndIn) {
  const ChainCost cost = chain_cost(three_blocks({.host_bytes = 5000}, 10'100), {0, 0, 0});
  EXPECT_TRUE(cost.fits);
  EXPECT_EQ(cost.extra_ns, 2 * 5120);
  EXPECT_EQ(cost.peak_bytes, 10'100);  // a block's own bytes and those of the block before it
  EXPECT_EQ(cost.host_peak_bytes, 15'000);
}

TEST(ChainCost, OfBacklogWithoutRoomIsTheTimeUntilItHasLeft) {
  // 12,000 bytes per block: 2,235 remain after a forward pass, and 9,765 leave in the next one.
  const Chain wide = three_blocks({.host_bytes = 12'000}, 100'000);
  const ChainCost much = chain_cost(wide, {0, 0, 0});
  // Backlog before the turn: 12,000 + 2 x 2,235; back: 12,288 ns, not hidden: nothing else.
  EXPECT_EQ(much.extra_ns, (12'000 + 2 * 2235) * 1024 / 1000 + 1 + 12'288);
  EXPECT_EQ(much.floor_bytes, 24'100);
  // Waiting in the forward pass takes away from the wait at the turn: never less in all.
  const ChainCost little = chain_cost(three_blocks({.host_bytes = 12'000}, 24'100), {0, 0, 0});
  EXPECT_TRUE(little.fits);
  EXPECT_GE(little.extra_ns, much.extra_ns);
}

TEST(ChainCost, OfASlowWayBackIsWhatTheNextBlockDoesNotHide) {
  Chain chain = three_blocks({.host_bytes = 1000}, 10'000);
  chain.link.in_bytes_per_s = 9'765'625;  // 10 bytes per kRateNs: 102,400 ns
  const ChainCost cost = chain_cost(chain, {0, 0, 0});
  EXPECT_EQ(cost.extra_ns, 1024 + 102'400 + 2 * (102'400 - 20'000));
}

TEST(ChainCost, OfTheDiskIsBoundBlockByBlock) {
  Chain chain = three_blocks({.disk_bytes = 1000}, 10'000);
  chain.disk = {9'765'625, 97'656'250};  // 102,400 ns out, 10,240 ns in
  const ChainCost cost = chain_cost(chain, {0, 0, 0});
  EXPECT_EQ(cost.extra_ns, 1024 + 2 * (102'400 - 10'000) + 102'400 + 10'240);
  EXPECT_EQ(cost.host_peak_bytes, 2000);
  chain.host_budget_bytes = 1999;
  EXPECT_FALSE(chain_cost(chain, {0, 0, 0}).fits);
}

TEST(ChainCost, ThereIsNoneWithoutTheEngine) {
  Chain chain = three_blocks({.host_bytes = 1000}, 10'000);
  chain.link = {};
  EXPECT_FALSE(chain_cost(chain, {0, 0, 0}).fits);
}

TEST(CheckChain, NamesWhatIsWrong) {
  const auto message = [](const Chain& chain) -> std::string {
    try {
      check_chain(chain);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  Chain chain = three_blocks({.kept_bytes = 1}, 1);
  EXPECT_EQ(message(chain), "");
  chain.blocks[2].class_index = 1;
  EXPECT_EQ(message(chain), "chain: block 2 is of class 1, but there are 1");
  chain = three_blocks({.kept_bytes = -1}, 1);
  EXPECT_NE(message(chain).find("class 0 has the number -1"), std::string::npos);
  chain = three_blocks({}, 1);
  chain.link.out_bytes_per_s = 10;
  EXPECT_NE(message(chain).find("link out of the device copies 10 bytes/s"), std::string::npos);
  EXPECT_NE(message(Chain{}).find("it has 0 blocks"), std::string::npos);
}

}  // namespace
}  // namespace strata::runtime
