// Which kinds of instructions are measured before the first step, and how often.
#include "train/engine/rehearse.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "runtime/testing/hand_made.h"

namespace strata::train {
namespace {

using compile::ProgramKey;
using compile::ProgramKind;
using zero::MicroStepKind;

/// Each instruction is a kind of its own and takes the time given.
class ListRehearsals : public testing::Test {
 protected:
  ListRehearsals() {
    machine_.instruction_seconds.value = 0;
    machine_.device.fp32_flops.value = 1e9;
  }
  void add(const MicroStepKind& kind, const std::string& label, double seconds) {
    runtime::Program& program = programs_.programs[{ProgramKind::train, kind}];
    runtime::Instruction in = runtime::hand_made(runtime::Queue::compute, label);
    in.demand.flops = 1e9 * seconds;
    in.demand.signature = ++signatures_;
    program.instructions.push_back(in);
  }
  /// Returns how often each instruction runs.
  [[nodiscard]] std::map<std::string, int> runs(double seconds) const {
    runtime::RehearsalLimits limits;
    limits.seconds = seconds;
    std::map<std::string, int> runs;
    for (const runtime::Rehearsal& rehearsal : list_rehearsals(programs_, machine_, limits))
      for (const runtime::Instruction& in : rehearsal.program.instructions) ++runs[in.label];
    return runs;
  }

  machine::Machine machine_ = machine::cpu_machine(1);
  compile::StepPrograms programs_;
  std::uint64_t signatures_ = 0;
};

TEST_F(ListRehearsals, EachKindRunsThreeTimesWhereThereIsTime) {
  add(MicroStepKind::first, "linear", 0.5);
  add(MicroStepKind::last, "update", 0.4);
  EXPECT_EQ(runs(3), (std::map<std::string, int>{{"linear", 3}, {"update", 3}}));
}

TEST_F(ListRehearsals, ALongKindIsMeasuredBeforeShortOnesRepeat) {
  add(MicroStepKind::first, "linear", 0.5);
  add(MicroStepKind::first, "attention", 0.4);
  add(MicroStepKind::last, "head", 1.8);
  // 2.7 s for one of each; what takes most of a step has what is left.
  EXPECT_EQ(runs(3.3), (std::map<std::string, int>{{"linear", 2}, {"attention", 1}, {"head", 1}}));
}

TEST_F(ListRehearsals, AKindThatIsLongerThanAllTheTimeIsLeftOut) {
  add(MicroStepKind::only, "head", 3.5);
  add(MicroStepKind::only, "linear", 0.5);
  EXPECT_EQ(runs(3), (std::map<std::string, int>{{"linear", 3}}));
}

TEST_F(ListRehearsals, WarmUpsRunWhatWasMeasuredBeforeAndNoCollectives) {
  add(MicroStepKind::only, "linear", 0.01);
  add(MicroStepKind::only, "reduce", 0.01);
  programs_.programs.begin()->second.instructions.back().collective.emplace();
  machine_.times = machine::OperationTimes(
      {{1, "linear", machine::Resource::device, DType::f32, 10'000'000, 10'000'000}});
  std::map<std::string, int> runs;
  for (const runtime::Rehearsal& rehearsal : list_warm_ups(programs_, machine_))
    for (const runtime::Instruction& in : rehearsal.program.instructions) ++runs[in.label];
  EXPECT_EQ(runs, (std::map<std::string, int>{{"linear", 5}}));
}

TEST_F(ListRehearsals, TokensAreCopiedInEachTurnSinceOthersMayHaveWrittenThere) {
  add(MicroStepKind::only, "embedding", 0.1);
  runtime::Program& program = programs_.programs.begin()->second;
  runtime::Value input, tokens;
  input.storage = runtime::Storage::persistent;
  input.role = runtime::Role::input;
  program.values = {input, tokens};
  const auto operand = [](runtime::ValueId value) {
    runtime::Operand made;
    made.type = {DType::i32, kernels::Shape{8}};
    made.value = value;
    return made;
  };
  runtime::Instruction copy = runtime::hand_made(runtime::Queue::upload, "copy");
  copy.inputs = {operand(0)};
  copy.outputs = {operand(1)};
  program.instructions.front().inputs = {operand(1)};
  program.instructions.insert(program.instructions.begin(), copy);
  EXPECT_EQ(runs(3), (std::map<std::string, int>{{"copy", 3}, {"embedding", 3}}));
}

}  // namespace
}  // namespace strata::train
