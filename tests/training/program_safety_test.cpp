// Breaks Programs of whole training steps on purpose: the verifier must notice.
#include <gtest/gtest.h>

#include <random>

#include "comm/factory.h"
#include "runtime/program/arena_alignment.h"
#include "runtime/program/verifier.h"
#include "tests/training/ranks.h"

namespace strata::tests {
namespace {

using runtime::Instruction;
using runtime::Operand;
using runtime::Program;

/// Builds the training Program of rank 1 of 2 at a stage; tests change copies of it.
Program step_program(int stage, bool recompute) {
  TrainingCase training;
  training.model = tiny_gpt2();
  training.options = tiny_options(2, 4, 1);
  training.options.zero.stage = stage;
  training.options.activation_checkpointing = recompute;
  training.world = 2;
  const auto communicators = comm::make_thread_communicators(2);
  return build_rank(training, *communicators[1]).train(zero::MicroStepKind::only);
}

class ProgramSafety : public testing::TestWithParam<int> {
 protected:
  const Program program_ = step_program(GetParam(), GetParam() % 2 == 1);
};

TEST_P(ProgramSafety, HoldsAsBuilt) {
  EXPECT_EQ(runtime::verify(program_), std::vector<std::string>{});
}

TEST_P(ProgramSafety, EveryWaitIsNeeded) {
  int waits = 0;
  for (std::size_t i = 0; i < program_.instructions.size(); ++i)
    for (std::size_t w = 0; w < program_.instructions[i].waits.size(); ++w, ++waits) {
      Program broken = program_;
      auto& list = broken.instructions[i].waits;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(w));
      EXPECT_FALSE(runtime::verify(broken).empty())
          << program_.instructions[i].label << " waits for nothing";
    }
  EXPECT_GT(waits, 10);
}

TEST_P(ProgramSafety, EveryBorderWaitIsNeeded) {
  for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
    if (program_.instructions[i].border_waits == 0) continue;
    Program broken = program_;
    broken.instructions[i].border_waits = 0;
    EXPECT_FALSE(runtime::verify(broken).empty());
  }
}

TEST_P(ProgramSafety, ATooSmallArenaIsSeen) {
  Program broken = program_;
  broken.arena_bytes[0] -= runtime::kArenaAlignment;
  EXPECT_FALSE(runtime::verify(broken).empty());
}

TEST_P(ProgramSafety, MovedTransientOperandsAreSeen) {
  // Only operands used twice or more are moved: moving a single use to free bytes is legal.
  std::map<runtime::ValueId, int> uses;
  const auto root = [&](const Operand& o) {
    const runtime::Value& value = program_.values[static_cast<std::size_t>(o.value)];
    return value.root == runtime::kNoValue ? o.value : value.root;
  };
  for (const Instruction& in : program_.instructions) {
    for (const Operand& o : in.inputs) ++uses[root(o)];
    for (const Operand& o : in.outputs) ++uses[root(o)];
  }
  std::mt19937_64 random(11);
  int moved = 0;
  for (int attempt = 0; attempt < 300; ++attempt) {
    Program broken = program_;
    Instruction& in = broken.instructions[random() % broken.instructions.size()];
    auto& list = random() % 2 == 0 && !in.outputs.empty() ? in.outputs : in.inputs;
    if (list.empty()) continue;
    Operand& operand = list[random() % list.size()];
    if (operand.bytes == 0 || uses[root(operand)] < 2) continue;
    operand.offset_bytes +=
        64 * (1 + static_cast<std::int64_t>(random() % 64)) * (random() % 2 == 0 ? 1 : -1);
    EXPECT_FALSE(runtime::verify(broken).empty()) << in.label;
    ++moved;
  }
  EXPECT_GT(moved, 150);
}

TEST_P(ProgramSafety, SwappedDependentInstructionsAreSeen) {
  // Swaps an instruction with the next one that reads what it alone writes.
  int swapped = 0;
  for (std::size_t i = 0; i + 1 < program_.instructions.size(); ++i) {
    const Instruction& first = program_.instructions[i];
    const Instruction& second = program_.instructions[i + 1];
    if (first.outputs.empty()) continue;
    const Operand& made = first.outputs[0];
    const bool transient =
        program_.values[static_cast<std::size_t>(made.value)].root == runtime::kNoValue &&
        made.offset_bytes >= program_.persistent_bytes[0];
    bool reads = false;
    for (const Operand& o : second.inputs) reads = reads || o.value == made.value;
    for (const Operand& o : first.inputs) reads = reads && o.offset_bytes != made.offset_bytes;
    if (!transient || !reads) continue;
    Program broken = program_;
    std::swap(broken.instructions[i], broken.instructions[i + 1]);
    EXPECT_FALSE(runtime::verify(broken).empty()) << first.label << " and " << second.label;
    ++swapped;
  }
  EXPECT_GT(swapped, 10);
}

INSTANTIATE_TEST_SUITE_P(Stages, ProgramSafety, testing::Values(0, 1, 2, 3));

}  // namespace
}  // namespace strata::tests
