#include "train/session/step_breakdown.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace strata::train {
namespace {

using runtime::Pass;
using runtime::Queue;

kernels::Operation named(std::string_view name) {
  kernels::Operation operation{};
  operation.name = name;
  return operation;
}

const kernels::Operation kOperation = named("test");

runtime::Instruction instruction(Queue queue, Pass pass) {
  runtime::Instruction in;
  in.operation = &kOperation;
  in.queue = queue;
  in.pass = pass;
  return in;
}

/// One instruction of each phase, and a communication that runs at the same time.
runtime::Program program(const std::string& name) {
  runtime::Program result;
  result.name = name;
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::update})
    result.instructions.push_back(instruction(Queue::compute, pass));
  result.instructions.push_back(instruction(Queue::communication, Pass::forward));
  return result;
}

constexpr std::int64_t kMillisecond = 1'000'000;

/// Reports times as a device does: instruction i took i + 1 ms.
void run(StepBreakdown& breakdown, const runtime::Program& of) {
  for (int i = 0; i < 4; ++i) breakdown.executed(of, i, 7, 7 + (i + 1) * kMillisecond);
}

TEST(StepBreakdown, MeansByPhaseSinceTheLastText) {
  StepBreakdown breakdown(Measured::device, 2, 5);
  const runtime::Program training = program("train.only");
  run(breakdown, training);
  EXPECT_FALSE(breakdown.complete(1, 0.010));
  run(breakdown, training);
  breakdown.waited(training, 0, Queue::communication, kMillisecond);
  EXPECT_EQ(breakdown.complete(2, 0.020).value(),
            "wall clock of steps 1 to 2: step 15.00 ms: forward 1.00 ms, backward 2.00 ms, update "
            "3.00 ms, waiting 0.50 ms; beside that communication 4.00 ms");
  EXPECT_FALSE(breakdown.complete(3, 1));
  EXPECT_TRUE(breakdown.complete(4, 1));
  EXPECT_EQ(breakdown.complete(5, 0.001).value(),
            "wall clock of steps 5 to 5: step 1.00 ms: forward 0.00 ms, backward 0.00 ms, update "
            "0.00 ms");
}

TEST(StepBreakdown, EvaluationIsNoPartOfAStep) {
  StepBreakdown breakdown(Measured::device, 1, 1);
  run(breakdown, program("evaluate"));
  EXPECT_NE(breakdown.complete(1, 0.001).value().find("forward 0.00 ms"), std::string::npos);
}

TEST(StepBreakdown, ThreadsMeasureThemselvesAndDevicesAreAsked) {
  EXPECT_FALSE(StepBreakdown(Measured::threads, 1, 1).wants_device_times());
  EXPECT_TRUE(StepBreakdown(Measured::device, 1, 1).wants_device_times());
  const runtime::Program training = program("train.only");
  StepBreakdown threads(Measured::threads, 1, 1), device(Measured::device, 1, 1);
  const auto before = std::chrono::steady_clock::now();
  for (StepBreakdown* breakdown : {&threads, &device}) {
    breakdown->begin(training, 0);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    while (std::chrono::steady_clock::now() < end) continue;
    breakdown->end(training, 0);
  }
  const std::chrono::duration<double, std::milli> passed =
      std::chrono::steady_clock::now() - before;
  const std::string word = "forward ", text = threads.complete(1, 1).value();
  ASSERT_NE(text.find(word), std::string::npos) << text;
  const double forward_ms = std::stod(text.substr(text.find(word) + word.size()));
  EXPECT_GE(forward_ms, 1) << text;
  EXPECT_LE(forward_ms, passed.count() + 0.01) << text;
  EXPECT_NE(device.complete(1, 1).value().find("forward 0.00 ms"), std::string::npos)
      << "around enqueuing";
}

}  // namespace
}  // namespace strata::train
