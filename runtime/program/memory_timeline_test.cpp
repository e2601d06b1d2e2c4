#include "runtime/program/memory_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/passes/autodiff.h"
#include "runtime/program/lower.h"
#include "runtime/testing/small_model.h"

namespace strata::runtime {
namespace {

Program model_program() {
  SmallModel model = small_model({.layers = 3, .width = 64, .batch = 2, .sequence = 32});
  differentiate(model.graph, {});
  PersistentLayout layout;
  layout.add_all(model.graph);
  return lower(std::move(model.graph), layout, {"train.only"});
}

const auto is_transient = [](const BufferLife& life) { return !life.persistent; };

TEST(MemoryTimeline, OtherBuffersNeverShareBytesWhileInUse) {
  const Program program = model_program();
  const MemoryTimeline timeline(program);
  const LiveBytes live = timeline.live_bytes();
  ASSERT_EQ(live.size(), program.instructions.size());
  for (std::size_t i = 0; i < live.size(); ++i) {
    std::int64_t bytes = program.persistent_bytes[0];
    for (const BufferLife& life : timeline.lives())
      if (is_transient(life) && life.is_in_use(static_cast<int>(i))) bytes += life.bytes;
    EXPECT_EQ(live[i][0], bytes) << i;
    EXPECT_LE(live[i][0], program.arena_bytes[0]);
  }
}

TEST(MemoryTimeline, OperandsOfNoValueHaveNoLife) {
  Program program = model_program();
  const std::size_t lives = MemoryTimeline(program).lives().size();
  Operand nobodys = program.instructions[0].outputs[0];
  nobodys.value = kNoValue;
  program.instructions[0].inputs.push_back(nobodys);
  program.instructions[0].workspace = nobodys;
  EXPECT_EQ(MemoryTimeline(program).lives().size(), lives);
}

TEST(MemoryTimeline, SaysWhatIsScratch) {
  const Program program = model_program();
  int scratch = 0;
  const MemoryTimeline timeline(program);
  for (const BufferLife& life : timeline.lives())
    if (life.scratch) {
      ++scratch;
      EXPECT_EQ(life.first, life.last);
      EXPECT_TRUE(program.instructions[static_cast<std::size_t>(life.first)].workspace);
    }
  EXPECT_EQ(scratch, std::ranges::count_if(program.instructions, [](const Instruction& in) {
              return in.workspace.has_value();
            }));
  EXPECT_GT(scratch, 0);
}

TEST(MemoryTimeline, ActivationsBelongToTheBlockAndPassThatMakesThem) {
  const Program program = model_program();
  const MemoryTimeline timeline(program);
  for (const BufferLife& life : timeline.lives()) {
    const Instruction& maker = program.instructions[static_cast<std::size_t>(life.first)];
    EXPECT_EQ(life.block, maker.block);
    EXPECT_EQ(life.pass, maker.pass);
  }
  const int peak = timeline.peak_instruction(Tier::device);
  ASSERT_GE(peak, 0);
  std::int64_t transient = 0;
  for (const Holder& holder : timeline.holders_at(Tier::device, peak))
    if (!holder.persistent) transient += holder.bytes;
  EXPECT_EQ(transient, program.live_bytes[0]);
}

}  // namespace
}  // namespace strata::runtime
