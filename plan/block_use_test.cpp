#include "plan/block_use.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compile/compile.h"
#include "plan/choices.h"
#include "plan/testing/small_training.h"
#include "runtime/program/memory_timeline.h"

namespace strata::plan {
namespace {

using runtime::Pass;
using runtime::Queue;
using runtime::Tier;

class BlockUses : public testing::Test {
 protected:
  void measure(const Choices& choices, int ranks = 1) {
    const auto where = comm::MeshSeat::of(
        {0, ranks, ranks > 1 ? comm::Exchange::peer_memory : comm::Exchange::none});
    runtime::Plan plan = with_choices(small_frame(ranks), choices, model_.build);
    plan.scheduled = false;
    programs_ = compile::compile(model_, plan, machine_, where).programs;
    const auto blocks = model_.build(plan.shape, compile::ModelUse::train).graph.blocks;
    use_ = measure_blocks(programs_, machine_, blocks);
    ASSERT_EQ(use_.blocks.size(), blocks.size());
  }

  compile::TrainingModel model_ = small_training(4);
  machine::Machine machine_ = machine::cpu_machine(2);
  compile::StepPrograms programs_;
  StepUse use_;
};

TEST_F(BlockUses, HaveThePeakOfTheStepInSomeBlock) {
  for (const int stage : {0, 3}) {
    Choices choices;
    choices.sharding.stage = stage;
    choices.micro_steps = 3;
    measure(choices, 2);
    std::int64_t peak = 0, most = 0;
    for (const auto& [key, program] : programs_.programs)
      for (const runtime::TierBytes& live : runtime::MemoryTimeline(program).live_bytes())
        peak = std::max(peak, live[static_cast<std::size_t>(Tier::device)]);
    for (const BlockUse& use : use_.blocks)
      most = std::max({most, use.forward_bytes, use.backward_bytes});
    EXPECT_EQ(most, peak);
    EXPECT_EQ(use_.runs, 3);
    EXPECT_TRUE(use_.has_transfers);  // collectives
  }
}

TEST_F(BlockUses, GrowInTheForwardPassByWhatLayersKeep) {
  measure({});
  EXPECT_FALSE(use_.has_transfers);
  for (std::size_t layer = 2; layer <= 4; ++layer) {
    EXPECT_GT(use_.blocks[layer].forward_bytes, use_.blocks[layer - 1].forward_bytes);
    EXPECT_GT(use_.blocks[layer].backward_bytes, use_.persistent_bytes);
  }
}

TEST_F(BlockUses, AddUpAllComputationOfBothPasses) {
  Choices choices;
  choices.again = Again::everything;
  measure(choices);
  std::int64_t expected = 0, found = 0;
  for (const runtime::Instruction& in : programs_.train(zero::MicroStepKind::only).instructions)
    if (in.queue == Queue::compute && in.pass != Pass::update)
      expected += machine::foreseen_ns(machine_, in.demand);
  for (const BlockUse& use : use_.blocks) found += use.forward_ns + use.backward_ns;
  EXPECT_EQ(found, expected);
  const std::int64_t again = use_.blocks[2].backward_ns;
  measure({});
  EXPECT_LT(use_.blocks[2].backward_ns, again);
  EXPECT_EQ(use_.blocks[2].forward_ns, use_.blocks[3].forward_ns);
}

TEST_F(BlockUses, KnowHowBusyTheLinkIs) {
  Choices choices;
  measure(choices);
  EXPECT_EQ(use_.upload_share, 0);
  choices.optimizer = Home::host;
  measure(choices);
  EXPECT_GT(use_.upload_share + use_.download_share, 0);
}

}  // namespace
}  // namespace strata::plan
