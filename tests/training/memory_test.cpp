// Design section 5, "Planned memory is used memory", and what each ZeRO stage must save, tested on
// Programs that are built and never run.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "comm/factory.h"
#include "runtime/program/memory_timeline.h"
#include "runtime/program/verifier.h"
#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

using runtime::Program;

TrainingCase gpt2_124m_case(int world, int stage) {
  TrainingCase training;
  training.model = gpt2_124m();
  training.options = tiny_options(world, 4 * world, 1);
  training.options.sequence_length = 256;
  training.options.zero.stage = stage;
  training.options.zero.param_persistence_threshold_elements = 100'000;
  training.world = world;
  training.threads = 2;
  return training;
}

compile::StepPrograms build(const TrainingCase& training, int rank) {
  return build_rank(
      training, *comm::make_thread_communicators(training.world)[static_cast<std::size_t>(rank)]);
}

double transient_bytes(const Program& program) {
  return static_cast<double>(program.arena_bytes[0] - program.persistent_bytes[0]);
}

std::vector<const Program*> programs_of(const compile::StepPrograms& set) {
  std::vector<const Program*> programs;
  for (const auto& [key, program] : set.programs)
    if (key.kind == compile::ProgramKind::train || key.kind == compile::ProgramKind::evaluate)
      programs.push_back(&program);
  return programs;
}

class Gpt2Memory : public testing::TestWithParam<int> {};

TEST_P(Gpt2Memory, TransientStorageIsWithinTwoPercentOfTheLargestLiveSet) {
  for (int world : {1, 2, 8})
    for (bool recompute : {false, true}) {
      TrainingCase training = gpt2_124m_case(world, GetParam());
      training.options.activation_checkpointing = recompute;
      const compile::StepPrograms set = build(training, world - 1);
      for (const Program* program : programs_of(set)) {
        EXPECT_LE(transient_bytes(*program), 1.02 * static_cast<double>(program->live_bytes[0]))
            << program->name << ", world " << world << ", recompute " << recompute;
        EXPECT_GT(program->live_bytes[0], 0);
      }
    }
}

TEST_P(Gpt2Memory, WhatStaysForItsNextUseCountsAsInUse) {
  TrainingCase training = gpt2_124m_case(1, GetParam());
  training.options.offload.optimizer = training.options.offload.parameters = plan::Home::host;
  const compile::StepPrograms set = build(training, 0);
  for (const Program* program : programs_of(set)) {
    std::int64_t most = 0;
    for (const runtime::TierBytes& bytes : runtime::MemoryTimeline(*program).live_bytes())
      most = std::max(most, bytes[0]);
    EXPECT_GE(program->persistent_bytes[0] + program->live_bytes[0], most) << program->name;
    EXPECT_LE(transient_bytes(*program), 1.02 * static_cast<double>(program->live_bytes[0]));
  }
}

TEST_P(Gpt2Memory, EveryProgramIsProvedSafe) {
  for (bool recompute : {false, true}) {
    TrainingCase training = gpt2_124m_case(2, GetParam());
    training.options.activation_checkpointing = recompute;
    const compile::StepPrograms set = build(training, 1);
    for (const Program* program : programs_of(set))
      EXPECT_EQ(runtime::verify(*program), std::vector<std::string>{}) << program->name;
  }
}

TEST_P(Gpt2Memory, PersistentBytesPerRankAreWhatTheStageLeaves) {
  constexpr int kWorld = 8;
  const int stage = GetParam();
  TrainingCase training = gpt2_124m_case(kWorld, stage);
  const auto communicators = comm::make_thread_communicators(kWorld);
  double parameters = 0;
  for (int rank : {0, 3, kWorld - 1}) {
    const compile::StepPrograms set =
        build_rank(training, *communicators[static_cast<std::size_t>(rank)]);
    parameters = 0;
    for (const runtime::ParameterUnit& unit : set.units)
      for (const runtime::Segment& segment : unit.segments)
        parameters += static_cast<double>(segment.elements);
    const double p = parameters;
    const double expected[] = {16 * p, 8 * p + 8 * p / kWorld, 4 * p + 12 * p / kWorld,
                               16 * p / kWorld};
    const auto persistent = static_cast<double>(train::count_memory(set).persistent());
    EXPECT_NEAR(persistent / expected[stage], 1, 0.02) << "rank " << rank;
  }
  EXPECT_NEAR(parameters, 124.4e6, 0.1e6);
}

TEST_P(Gpt2Memory, TheRatioIsTheShareOfTheOptimizerThatLeavesTheDevice) {
  TrainingCase training = gpt2_124m_case(2, GetParam());
  for (const plan::Home target : {plan::Home::host, plan::Home::disk})
    for (const double ratio : {0.0, 0.05, 0.5, 0.95, 1.0}) {
      training.options.offload.optimizer = target;
      training.options.offload.optimizer_ratio = ratio;
      const train::MemoryBytes memory = train::count_memory(build(training, 1));
      const std::int64_t left = memory.pageable.optimizer + memory.disk.optimizer;
      // The share of a unit that is left is rounded to whole cells.
      EXPECT_NEAR(static_cast<double>(left) / static_cast<double>(left + memory.optimizer), ratio,
                  0.001);
    }
}

TEST_P(Gpt2Memory, RecomputeLowersTheArenaByWhatLayersKept) {
  TrainingCase training = gpt2_124m_case(2, GetParam());
  // Gathers kept for later use would hide what recomputation saves.
  training.options.zero.max_reuse_distance_elements = 0;
  training.options.zero.prefetch_bucket_elements = 0;
  const std::int64_t kept = build(training, 0).arena_bytes(runtime::Tier::device);
  training.options.activation_checkpointing = true;
  const std::int64_t each = build(training, 0).arena_bytes(runtime::Tier::device);
  training.options.checkpoint_segments = 3;
  const std::int64_t three = build(training, 0).arena_bytes(runtime::Tier::device);
  // The MLP's inner products alone, gelu's input and output of ten layers: rows x 3072 fp32, twice.
  const std::int64_t rows = 4 * 256;
  EXPECT_LE(each, kept - 10 * 2 * rows * 3072 * 4);
  EXPECT_LT(three, kept);
}

TEST_P(Gpt2Memory, GatheredBytesStayWithinTheLiveLimit) {
  constexpr std::int64_t kLimit = 60'000'000;  // the embedding's 39 million and two layers
  TrainingCase training = gpt2_124m_case(2, GetParam());
  training.options.zero.max_live_parameters_elements = kLimit;
  const compile::StepPrograms set = build(training, 0);
  for (const Program* program : programs_of(set)) {
    std::map<runtime::ValueId, std::pair<std::size_t, std::size_t>> span;  // root -> its uses
    const auto touch = [&](const runtime::Operand& operand, std::size_t i) {
      const runtime::Value& value = program->values[static_cast<std::size_t>(operand.value)];
      const runtime::ValueId root = value.root == runtime::kNoValue ? operand.value : value.root;
      if (!program->values[static_cast<std::size_t>(root)].name.starts_with("gathered/")) return;
      span.try_emplace(root, i, i).first->second.second = i;
    };
    for (std::size_t i = 0; i < program->instructions.size(); ++i) {
      for (const auto& operand : program->instructions[i].inputs) touch(operand, i);
      for (const auto& operand : program->instructions[i].outputs) touch(operand, i);
    }
    EXPECT_EQ(span.empty(), GetParam() < 3);
    for (std::size_t i = 0; i < program->instructions.size(); ++i) {
      std::int64_t live = 0;
      for (const auto& [root, lives] : span)
        if (lives.first <= i && i <= lives.second)
          live += program->values[static_cast<std::size_t>(root)].type.shape.elements();
      ASSERT_LE(live, kLimit) << program->name << " at instruction " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, Gpt2Memory, testing::Values(0, 1, 2, 3));

/// Returns the words of each line with one blank between them.
std::string words_of(const std::string& table) {
  std::string text;
  std::istringstream lines(table);
  for (std::string line, word; std::getline(lines, line); text += "\n") {
    std::istringstream words(line);
    for (const char* blank = ""; words >> word; blank = " ") text += blank + word;
  }
  return text;
}

TEST(MemoryTable, HasALineForEachPurposeAndAColumnForEachTierInUse) {
  train::MemoryBytes memory;
  memory.parameters = 1024;
  memory.gradients = 2048;
  memory.optimizer = 3072;
  memory.inputs = memory.pinned.inputs = 100;
  memory.transient = 4096;
  EXPECT_EQ(words_of(train::format_memory(memory)),
            "device pinned\n"
            "parameters 1.00 KiB -\n"
            "gradients 2.00 KiB -\n"
            "optimizer state 3.00 KiB -\n"
            "inputs and control 100 bytes 100 bytes\n"
            "transient (activations, transfers, scratch) 4.00 KiB -\n"
            "arena 10.10 KiB 100 bytes\n");
  std::istringstream lines(train::format_memory(memory));
  std::size_t width = 0;
  for (std::string line; std::getline(lines, line);) {
    if (width == 0) width = line.size();
    EXPECT_EQ(line.size(), width) << "columns are not below one another: " << line;
  }
  memory.pageable.optimizer = 5;
  memory.disk.snapshot = 6;
  const std::string all = words_of(train::format_memory(memory));
  EXPECT_NE(all.find("device pinned pageable disk\n"), std::string::npos) << all;
  EXPECT_NE(all.find("optimizer state 3.00 KiB - 5 bytes -\n"), std::string::npos) << all;
  EXPECT_NE(all.find("snapshot for checkpoints - - - 6 bytes\n"), std::string::npos) << all;
}

}  // namespace
}  // namespace strata::tests
