// Gathered parameters never exceed the Plan's live limit, whatever the order pass, buckets and
// recomputation do. Counted are whole buffers of the lowered Program.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "comm/factory.h"
#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

constexpr std::int64_t kLimit = 20'000;  // one layer has 13,312 elements

/// Returns the largest number of elements in gathered buffers that are live at one instruction.
std::int64_t most_gathered(const runtime::Program& program) {
  std::map<runtime::ValueId, std::pair<int, int>> life;  // first and last instruction by root
  for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
    const auto touch = [&](const runtime::Operand& operand) {
      const runtime::ValueId root = program.values[operand.value].root;
      const runtime::ValueId id = root == runtime::kNoValue ? operand.value : root;
      if (!program.values[id].name.starts_with("gathered/")) return;
      life.try_emplace(id, i, i).first->second.second = i;
    };
    std::ranges::for_each(program.instructions[i].inputs, touch);
    std::ranges::for_each(program.instructions[i].outputs, touch);
  }
  std::int64_t most = 0;
  for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
    std::int64_t live = 0;
    for (const auto& [id, span] : life)
      if (span.first <= i && i <= span.second) live += program.values[id].type.shape.elements();
    most = std::max(most, live);
  }
  return most;
}

TrainingCase limited() {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.world = 2;
  training.options = tiny_options(2, 8, 1);
  training.options.zero.stage = 3;
  training.options.zero.max_live_parameters_elements = kLimit;
  return training;
}

void expect_within_limit(const TrainingCase& training) {
  const auto communicators = comm::make_thread_communicators(training.world);
  const compile::StepPrograms programs = build_rank(training, *communicators[0]);
  const std::int64_t most = most_gathered(programs.programs.begin()->second);
  EXPECT_LE(most, kLimit);
  EXPECT_GT(most, kLimit / 2);
}

TEST(GatherLimit, HoldsWithPrefetch) { expect_within_limit(limited()); }

TEST(GatherLimit, HoldsWhenOneUnitIsGatheredInPieces) {
  TrainingCase training = limited();
  training.options.zero.allgather_bucket_elements = 3072;
  expect_within_limit(training);
}

TEST(GatherLimit, HoldsWhenASegmentOfSeveralLayersIsRecomputed) {
  TrainingCase training = limited();
  training.options.activation_checkpointing = true;
  training.options.checkpoint_segments = 1;
  expect_within_limit(training);
}

}  // namespace
}  // namespace strata::tests
