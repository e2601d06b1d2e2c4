// The verifier's view of storage: broken addresses of a Program that is otherwise in order.
#include <gtest/gtest.h>

#include "runtime/verifier.h"

namespace strata::runtime {
namespace {

constexpr int kDevice = static_cast<int>(Tier::device);
const kernels::Operation kStep{.name = "step", .infer = nullptr, .cost = nullptr};
const kernels::TensorType kType{DType::f32, kernels::Shape{16}};

/// Values: persistent a @0 and b @64, transient t @128, and b as step 1 leaves it.
struct Storage {
  Program program;

  Storage() {
    program.name = "test";
    program.blocks = {"block"};
    program.persistent_bytes[kDevice] = 128;
    program.arena_bytes[kDevice] = 192;
    for (const char* name : {"a", "b", "t"}) {
      Value value;
      value.name = name;
      value.type = kType;
      value.storage = name[0] == 't' ? runtime::Storage::transient : runtime::Storage::persistent;
      program.values.push_back(value);
    }
    program.values.push_back(program.values[1]);
    program.values[3].root = 1;
    program.values[3].version = 1;
    add({operand(0, 0)}, {operand(2, 128)});
    add({operand(2, 128)}, {operand(3, 64)});
  }
  static Operand operand(ValueId value, std::int64_t offset) {
    return {kType, Tier::device, offset, kType.span_bytes(), value};
  }
  void add(std::vector<Operand> inputs, std::vector<Operand> outputs) {
    Instruction in;
    in.operation = &kStep;
    in.label = "step " + std::to_string(program.instructions.size());
    in.inputs = std::move(inputs);
    in.outputs = std::move(outputs);
    if (program.instructions.empty()) in.border_waits = (1u << kQueues) - 2;
    program.instructions.push_back(std::move(in));
  }
  /// The first problem, "" when there is none.
  [[nodiscard]] std::string problem() const {
    const auto problems = verify(program);
    return problems.empty() ? "" : problems.front();
  }
};

TEST(VerifierOfStorage, AcceptsWhatIsInOrder) { EXPECT_EQ(Storage().problem(), ""); }

TEST(VerifierOfStorage, RefusesPersistentValuesThatOverlap) {
  Storage s;
  s.program.instructions[1].outputs[0].offset_bytes = 32;
  EXPECT_EQ(s.problem(), "persistent values 'a' and 'b' overlap at device byte 32");
}

TEST(VerifierOfStorage, RefusesAPersistentValueAmongTransientOnes) {
  Storage s;
  s.program.arena_bytes[kDevice] = 512;
  s.program.instructions[1].outputs[0].offset_bytes = 256;
  EXPECT_EQ(s.problem(), "#1 'step 1': persistent value 'b' leaves persistent storage");
}

TEST(VerifierOfStorage, RefusesAValueWithTwoAddresses) {
  Storage s;
  s.add({Storage::operand(0, 64)}, {});
  EXPECT_EQ(s.problem(), "#2 'step 2': 'a' lies at device byte 64, elsewhere at 0");
}

TEST(VerifierOfStorage, RefusesAnOperandOfOtherSizeThanItsType) {
  Storage s;
  s.program.instructions[0].inputs[0].bytes = 32;
  EXPECT_EQ(s.problem(), "#0 'step 0': 'a' has 32 bytes, its type fp32[16] 64");
}

TEST(VerifierOfStorage, RefusesAPredicateThatNobodyWrote) {
  Storage s;
  s.program.instructions[0].predicate = Storage::operand(2, 128);
  EXPECT_EQ(s.problem(), "#0 'step 0' reads 't' at byte 128 that nobody wrote");
}

TEST(VerifierOfStorage, DoesNotCountOnInstructionsThatMayBeSkipped) {
  Storage s;
  s.program.instructions[0].predicate = Storage::operand(1, 64);
  EXPECT_EQ(s.problem(), "#1 'step 1' reads 't' at byte 128 that nobody wrote");
}

}  // namespace
}  // namespace strata::runtime
