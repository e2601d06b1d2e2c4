// Tests the counts of bytes that move between tiers.
#include "runtime/execute/transfer_tally.h"

#include <gtest/gtest.h>

#include "runtime/execute/usage_recorder.h"

namespace strata::runtime {
namespace {

Instruction moving(Queue queue, std::int64_t bytes, bool conditional = false) {
  Instruction in;
  in.queue = queue;
  in.demand.moved_bytes = bytes;
  if (conditional) in.predicate = Operand{};
  return in;
}

Program program_of(std::string name, std::vector<Instruction> instructions) {
  Program program;
  program.name = std::move(name);
  program.instructions = std::move(instructions);
  return program;
}

std::int64_t of(const QueueBytes& bytes, Queue queue) {
  return bytes[static_cast<std::size_t>(queue)];
}

TEST(TransferTally, CountsRunsAndBytesByProgram) {
  const Program step =
      program_of("step", {moving(Queue::upload, 100), moving(Queue::upload, 10, true),
                          moving(Queue::disk_read, 5000), moving(Queue::disk_write, 4096, true),
                          moving(Queue::compute, 7), moving(Queue::host, 7)});
  const Program drain = program_of("drain", {moving(Queue::download, 3)});
  TransferTally tally;
  tally.begin_program(step, 0);
  tally.begin_program(step, 1);
  tally.begin_program(drain, 1);
  ASSERT_EQ(tally.programs().size(), 2u);
  const ProgramTally& steps = tally.programs()[0];
  EXPECT_EQ(steps.program, "step");
  EXPECT_EQ(steps.runs, 2);
  EXPECT_EQ(of(steps.always, Queue::upload), 100);
  EXPECT_EQ(of(steps.conditional, Queue::upload), 10);
  EXPECT_EQ(of(steps.always, Queue::disk_read), 8192);  // whole sectors
  EXPECT_EQ(of(steps.conditional, Queue::disk_write), 4096);
  EXPECT_EQ(of(steps.always, Queue::compute) + of(steps.always, Queue::host), 0);
  EXPECT_EQ(tally.programs()[1].runs, 1);
}

TEST(TransferTally, CopiesAreThoseThatWereTold) {
  const Program step =
      program_of("step", {moving(Queue::upload, 100), moving(Queue::download, 30, true)});
  TransferTally tally;
  tally.begin_program(step, 0);
  tally.copied(step, 0);
  tally.begin_program(step, 1);
  tally.copied(step, 0);
  tally.copied(step, 1);
  EXPECT_EQ(of(tally.copied_bytes(), Queue::upload), 200);
  EXPECT_EQ(of(tally.copied_bytes(), Queue::download), 30);
}

/// The metrics of a step are read when the next one has begun.
TEST(UsageRecorder, BytesBelongToTheStepOfTheirProgram) {
  const Program step = program_of("step", {moving(Queue::upload, 100)});
  const Program drain = program_of("drain", {moving(Queue::upload, 1)});
  UsageRecorder usage;
  const auto uploaded = [&](std::int64_t of_step) {
    return usage.take(of_step)[static_cast<std::size_t>(Queue::upload)].bytes;
  };
  usage.begin_program(step, 0);
  usage.begin_program(step, 1);
  EXPECT_EQ(uploaded(0), 100);
  usage.begin_program(step, 2);
  EXPECT_EQ(uploaded(1), 100);
  usage.begin_program(drain, 2);
  EXPECT_EQ(uploaded(2), 101);
  EXPECT_EQ(uploaded(2), 0);
}

}  // namespace
}  // namespace strata::runtime
