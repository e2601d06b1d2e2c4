// Checks to which step a trace assigns an instruction.
#include "runtime/execute/trace.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/json.h"

namespace strata::runtime {
namespace {

using Words = std::vector<std::string>;

const kernels::Operation kWork{.name = "work"};

Instruction on(Queue queue, std::string label, std::vector<std::int32_t> waits = {}) {
  Instruction in;
  in.operation = &kWork;
  in.queue = queue;
  in.label = std::move(label);
  in.waits = std::move(waits);
  return in;
}

Program program_of(std::string name, std::vector<Instruction> instructions) {
  Program program;
  program.name = std::move(name);
  program.instructions = std::move(instructions);
  return program;
}

void run(TraceRecorder& trace, const Program& program, int instruction) {
  trace.begin(program, instruction);
  trace.end(program, instruction);
}

std::vector<JsonValue> events_of(const TraceRecorder& trace, const std::string& phase) {
  std::vector<JsonValue> found;
  for (const JsonValue& event : parse_json("[" + trace.events() + "null]", "trace", {}).elements())
    if (event.is(JsonKind::object) && event.at("ph").as_string() == phase) found.push_back(event);
  return found;
}

/// Returns "LABEL STEP" for each instruction, by queue.
Words instructions_of(const TraceRecorder& trace) {
  Words words;
  for (const JsonValue& event : events_of(trace, "X"))
    if (event.at("cat").as_string() != "step")
      words.push_back(event.at("name").as_string() + " " +
                      std::to_string(event.at("args").at("step").as_integer()));
  return words;
}

TEST(Trace, AQueueIsFollowedThroughProgramsInWhichItHasNothingToDo) {
  const Program both =
      program_of("both", {on(Queue::compute, "linear"), on(Queue::communication, "reduce", {0})});
  const Program alone = program_of("alone", {on(Queue::compute, "norm")});
  TraceRecorder trace(TraceOptions{});
  trace.starting(both, 0);
  trace.starting(alone, 1);
  trace.starting(both, 2);
  run(trace, both, 0);
  run(trace, alone, 0);
  run(trace, both, 0);
  // The other thread, of the communication queue, is late.
  run(trace, both, 1);
  run(trace, both, 1);
  EXPECT_EQ(instructions_of(trace),
            (Words{"linear 1", "norm 2", "linear 3", "reduce 1", "reduce 3"}));
  EXPECT_EQ(events_of(trace, "s").size(), 2u) << "each reduce waited for the linear of its step";
}

TEST(Trace, PiecesOfItsTextAreWholeLines) {
  const Program program =
      program_of("step", {on(Queue::compute, "linear"), on(Queue::communication, "reduce", {0})});
  TraceRecorder trace(TraceOptions{});
  for (int step = 0; step < 20; ++step) {
    trace.starting(program, step);
    run(trace, program, 0);
    run(trace, program, 1);
  }
  std::string joined;
  std::size_t pieces = 0, longest = 0;
  trace.for_each_piece(500, [&](std::string_view piece) {
    EXPECT_TRUE(piece.ends_with(",\n")) << piece;
    joined += piece;
    longest = std::max(longest, piece.size());
    ++pieces;
  });
  EXPECT_EQ(joined, trace.events());
  EXPECT_LT(longest, 2000U) << "a piece and what was written at once";
  EXPECT_GT(pieces, joined.size() / 2000);
  EXPECT_EQ(events_of(trace, "s").size(), 20U);
}

TEST(Trace, KeepsTheStepsThatWereAskedForAsFarAsThereIsRoom) {
  const Program program = program_of("step", {on(Queue::compute, "linear")});
  TraceOptions options;
  options.steps = {2, 5};
  options.capacity_per_queue = 3;
  TraceRecorder trace(options);
  for (int step = 0; step < 6; ++step) {
    trace.starting(program, step);
    run(trace, program, 0);
  }
  EXPECT_EQ(instructions_of(trace), (Words{"linear 2", "linear 3", "linear 4"}));
  EXPECT_EQ(trace.dropped(), 1);
}

}  // namespace
}  // namespace strata::runtime
