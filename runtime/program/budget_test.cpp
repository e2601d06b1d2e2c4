#include "runtime/program/budget.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/factory.h"
#include "runtime/passes/autodiff.h"
#include "runtime/program/lower.h"
#include "runtime/program/memory_timeline.h"
#include "runtime/testing/small_model.h"

namespace strata::runtime {
namespace {

constexpr auto kDevice = static_cast<std::size_t>(Tier::device);
constexpr auto kPinned = static_cast<std::size_t>(Tier::pinned);

/// Makes a differentiated model whose layers are much wider than the rest.
Program model_program() {
  SmallModel model =
      small_model({.layers = 3, .width = 512, .batch = 4, .sequence = 64, .dropout = 0.1});
  differentiate(model.graph, {});
  PersistentLayout layout;
  layout.add_all(model.graph);
  layout.add("another Program's", kernels::TensorType(DType::u8, kernels::Shape{1000}),
             Tier::device, Role::control);
  return lower(std::move(model.graph), layout, {"train.only"});
}

/// Makes a relay whose gathered values are in pinned memory.
Program two_tiers() {
  const auto communicators = comm::make_thread_communicators(2);
  Graph graph = relay(3, 256, 2);
  for (Value& value : graph.values)
    if (value.name.starts_with("whole.")) value.tier = Tier::pinned;
  PersistentLayout layout;
  layout.add_all(graph);
  return lower(std::move(graph), layout,
               {"relay", {}, comm::MeshSeat::of(communicators[0]->seat())});
}

TEST(Budget, AllowsExactlyWhatAProgramNeeds) {
  for (const Program& program : {model_program(), two_tiers()}) {
    EXPECT_EQ(over_budget(program, kUnlimitedBytes), std::vector<std::string>{});
    EXPECT_EQ(over_budget(program, program.arena_bytes), std::vector<std::string>{});
    for (std::size_t tier = 0; tier < kTiers; ++tier) {
      TierBytes less = program.arena_bytes;
      --less[tier];
      EXPECT_EQ(over_budget(program, less).size(), 1U) << tier;
    }
  }
}

TEST(Budget, CountsEveryByteAtThePeak) {
  const Program program = model_program();
  const TierPeak peak = peak_of(program, Tier::device);
  EXPECT_EQ(peak.needed_bytes, program.arena_bytes[kDevice]);
  std::int64_t transient = 0, persistent = 0;
  for (const Holder& holder : peak.holders)
    (holder.persistent ? persistent : transient) += holder.bytes;
  EXPECT_EQ(transient, program.live_bytes[kDevice]);
  EXPECT_EQ(persistent, program.persistent_bytes[kDevice] - 1024);  // 1000 bytes, aligned
  EXPECT_EQ(transient + persistent + peak.other_bytes, peak.needed_bytes);
  EXPECT_GE(peak.other_bytes, 1024);
  for (std::size_t i = 1; i < peak.holders.size(); ++i)
    EXPECT_GE(peak.holders[i - 1].bytes, peak.holders[i].bytes);
}

TEST(Budget, LiveBytesReachWhatALoweredProgramSays) {
  for (const Program& program : {model_program(), two_tiers()}) {
    TierBytes most{};
    for (const TierBytes& bytes : MemoryTimeline(program).live_bytes())
      for (std::size_t tier = 0; tier < kTiers; ++tier)
        most[tier] = std::max(most[tier], bytes[tier]);
    for (std::size_t tier = 0; tier < kTiers; ++tier)
      EXPECT_EQ(most[tier], program.persistent_bytes[tier] + program.live_bytes[tier]) << tier;
  }
}

TEST(Budget, SaysWhoseBytesFillTheTierAndWhere) {
  const Program program = model_program();
  const std::int64_t needed = program.arena_bytes[kDevice];
  TierBytes budget = kUnlimitedBytes;
  budget[kDevice] = needed / 2;
  const std::vector<std::string> messages = over_budget(program, budget);
  ASSERT_EQ(messages.size(), 1U);
  const auto expect_words = [&](const std::string& words) {
    EXPECT_NE(messages[0].find(words), std::string::npos) << words << " not in " << messages[0];
  };
  expect_words("Program 'train.only' needs " + std::to_string(needed) +
               " bytes of tier device, the Plan allows " + std::to_string(needed / 2));
  // The middle layer keeps rows x width fp32 twice: the results of its first product and its gelu.
  const TierPeak peak = peak_of(program, Tier::device);
  const Holder& largest = peak.holders.front();
  EXPECT_EQ(largest.role, Role::activation);
  EXPECT_EQ(largest.block.substr(0, 6), "layer.");
  EXPECT_GE(largest.bytes, 2 * 4 * 64 * 512 * 4);
  expect_words(std::to_string(largest.bytes) + " activation of " + largest.block);
  const auto at = static_cast<std::size_t>(peak.instruction);
  expect_words("at instruction " + std::to_string(at) + " '" + program.instructions[at].label +
               "'");
}

TEST(Budget, TiersAreJudgedApart) {
  const Program program = two_tiers();
  TierBytes budget = kUnlimitedBytes;
  budget[kPinned] = program.arena_bytes[kPinned] - 1;
  const std::vector<std::string> one = over_budget(program, budget);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_NE(one[0].find("bytes of tier pinned"), std::string::npos) << one[0];
  budget[kDevice] = 0;
  const std::vector<std::string> both = over_budget(program, budget);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_NE(both[0].find("bytes of tier device"), std::string::npos) << both[0];
  EXPECT_EQ(both[1], one[0]);
}

TEST(Budget, ATierThatNothingTouchesNeedsNothing) {
  const TierPeak peak = peak_of(two_tiers(), Tier::disk);
  EXPECT_EQ(peak.needed_bytes, 0);
  EXPECT_EQ(peak.instruction, -1);
  EXPECT_TRUE(peak.holders.empty());
}

}  // namespace
}  // namespace strata::runtime
