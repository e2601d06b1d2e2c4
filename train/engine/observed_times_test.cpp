// Tests the times of kinds of instructions that follow from recorded steps.
#include "train/engine/observed_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "plan/foresee.h"
#include "runtime/testing/hand_made.h"

namespace strata::train {
namespace {

using runtime::Instruction;
using runtime::Queue;

constexpr std::int64_t kMs = 1'000'000;

/// A machine of two cores on which arithmetic and uploads take round times, and one Program, each
/// instruction of which is a kind of its own.
class ObservedTimes : public testing::Test {
 protected:
  ObservedTimes() {
    machine_.instruction_seconds.value = 0;
    machine_.device.fp32_flops.value = 1e9;
    machine_.memory.bytes_per_second.value = machine_.device.bytes_per_second.value = 1e12;
    machine_.link.to_device.value = 1e9;
    program().name = "train.only";
  }
  runtime::Program& program() { return programs_.programs[{}]; }
  /// Adds an instruction and returns its place, which is its signature - 1.
  int add(Instruction in) {
    in.demand.signature = program().instructions.size() + 1;
    program().instructions.push_back(std::move(in));
    return static_cast<int>(program().instructions.size()) - 1;
  }
  int add(Queue queue, const char* operation, double ms) {
    Instruction in = runtime::hand_made(queue, operation);
    in.operation = &kernels::find_operation(operation);
    in.demand.operation = in.operation->name;
    in.demand.flops = 1e6 * ms;
    return add(std::move(in));
  }
  int add_upload(double ms) {
    Instruction in = runtime::hand_made(Queue::upload, "upload");
    in.demand.resource = machine::Resource::upload;
    in.demand.moved_bytes = static_cast<std::int64_t>(1e6 * ms);
    return add(std::move(in));
  }
  void start(std::int64_t step, const runtime::Program& program) {
    recorder_.starting(program, step);
  }
  void ran(const runtime::Program& program, int instruction, double ms) {
    now_ += kMs;
    recorder_.executed(program, instruction, now_,
                       now_ + static_cast<std::int64_t>(ms * static_cast<double>(kMs)));
  }
  void ran_between(int instruction, double begin_ms, double end_ms) {
    const auto ns = [](double ms) {
      return static_cast<std::int64_t>(ms * static_cast<double>(kMs));
    };
    recorder_.executed(program(), instruction, ns(begin_ms), ns(end_ms));
  }
  /// One instruction in as many steps as times are given.
  void record(int instruction, const std::vector<double>& ms) {
    for (const double one : ms) {
      start(step_++, program());
      ran(program(), instruction, one);
    }
  }
  [[nodiscard]] machine::OperationTimes observed() const {
    return observed_times(recorder_, programs_, machine_);
  }
  [[nodiscard]] std::optional<double> ms_of(int instruction) const {
    const auto ns = observed().find(static_cast<std::uint64_t>(instruction) + 1);
    if (!ns) return {};
    return static_cast<double>(*ns) / static_cast<double>(kMs);
  }

  machine::Machine machine_ = machine::cpu_machine(2);
  compile::StepPrograms programs_;
  runtime::TraceRecorder recorder_{{.of = runtime::TraceOf::device, .capacity_per_queue = 100}};
  std::int64_t step_ = 0, now_ = 0;
};

TEST_F(ObservedTimes, AreMeansWithoutWhatWasHeldUp) {
  const int idle = add(Queue::compute, "linear", 1), linear = add(Queue::compute, "linear", 1);
  Instruction gather = runtime::hand_made(Queue::communication, "gather", {linear});
  gather.demand.resource = machine::Resource::peers;
  gather.demand.bytes = 1e6;
  gather.collective.emplace();
  const int collective = add(gather);
  program().instructions[0].border_waits = runtime::bit(Queue::communication);
  record(linear, {2, 90, 3});
  record(collective, {7, 90, 5});
  EXPECT_EQ(ms_of(linear), 2.5);
  EXPECT_EQ(ms_of(collective), 6);
  EXPECT_EQ(ms_of(idle), std::nullopt);
  const machine::OperationTimes all = observed();
  const auto& time = all.all().front();
  EXPECT_EQ(time.operation, "linear");
  EXPECT_EQ(time.guess_ns, 1 * kMs);
}

TEST_F(ObservedTimes, HaveWhatAThreadTookToWake) {
  const int first = add(Queue::compute, "linear", 1), upload = add_upload(1);
  const int after_it = add(Queue::compute, "linear", 1), next = add(Queue::compute, "linear", 1);
  Instruction gather = runtime::hand_made(Queue::communication, "gather", {next});
  gather.demand.resource = machine::Resource::peers;
  gather.collective.emplace();
  const int collective = add(gather);
  program().instructions[1].waits = {first};
  program().instructions[2].waits = {upload};
  start(0, program());
  ran_between(first, 1, 2);  // nobody knows when the host started the run
  ran_between(upload, 2.5, 4);
  ran_between(after_it, 5, 6);
  ran_between(next, 6.5, 8);
  ran_between(collective, 9, 10);  // waits for other ranks, too
  EXPECT_EQ(ms_of(first), 1);
  EXPECT_EQ(ms_of(upload), 2);
  EXPECT_EQ(ms_of(after_it), 2);
  EXPECT_EQ(ms_of(next), 2);
  EXPECT_EQ(ms_of(collective), 1);
}

TEST_F(ObservedTimes, WhatAStepDidNotWantTakesNoTime) {
  const int update = add(Queue::compute, "linear", 1), copy = add(Queue::compute, "copy", 1);
  const int skipped = add(Queue::compute, "linear", 1);
  for (Instruction& in : program().instructions) in.predicate.emplace();
  record(update, {0.0002, 0.0003, 4, 0.0001});
  record(copy, {4, 4, 4});
  record(skipped, {0.0002, 0.0003});
  EXPECT_EQ(ms_of(update), 4);
  EXPECT_EQ(ms_of(copy), std::nullopt);
  EXPECT_EQ(ms_of(skipped), std::nullopt);
}

TEST_F(ObservedTimes, OtherProgramsDoNotCount) {
  const int linear = add(Queue::compute, "linear", 1);
  runtime::Program evaluate = program();
  evaluate.name = "evaluate";
  start(0, evaluate);
  ran(evaluate, linear, 9);
  EXPECT_TRUE(observed().empty());
}

TEST_F(ObservedTimes, TimesBesideOthersAreForeseenAsTheyWere) {
  // Two cores for three: the product takes both, the upload one, and each takes longer.
  const int linear = add(Queue::compute, "linear", 2), upload = add_upload(2);
  program().instructions[0].border_waits = runtime::bit(Queue::upload);
  program().instructions[1].border_waits = runtime::bit(Queue::compute);
  const double alone = 2e-3;
  const double foreseen = plan::foresee(programs_, machine_).step_seconds;
  ASSERT_GT(foreseen, 1.1 * alone);
  // All took three times as long as was foreseen.
  record(linear, {3e3 * foreseen});
  record(upload, {3e3 * foreseen});
  EXPECT_NEAR(ms_of(linear).value(), 3e3 * alone, 1e-3);
  EXPECT_NEAR(ms_of(upload).value(), 3e3 * alone, 1e-3);
  machine::Machine refined = machine_;
  refined.times.merge(observed());
  EXPECT_NEAR(plan::foresee(programs_, refined).step_seconds, 3 * foreseen, 0.01 * foreseen);
}

}  // namespace
}  // namespace strata::train
