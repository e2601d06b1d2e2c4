// Tests how the verifier sees storage, with broken addresses in Programs that are otherwise right.
#include <gtest/gtest.h>

#include "runtime/program/verifier.h"

namespace strata::runtime {
namespace {

constexpr int kDevice = static_cast<int>(Tier::device);
const kernels::Operation kStep{
    .name = "step", .infer = nullptr, .cost = nullptr, .predicated = true};
const kernels::TensorType kType{DType::f32, kernels::Shape{16}};

/// A Program with persistent a @0 and b @64, transient t @128, and b as step 1 leaves it.
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
  /// Adds a transient value of 64 bytes.
  ValueId temporary(const char* name) {
    program.arena_bytes[kDevice] = 512;
    program.values.push_back(program.values[2]);
    program.values.back().name = name;
    return static_cast<ValueId>(program.values.size()) - 1;
  }
  /// Makes an operand of `count` elements of t from `first` on, at `version`.
  Operand part(const char* name, std::int64_t first, std::int64_t count, std::int32_t version) {
    Value& value = program.values[static_cast<std::size_t>(temporary(name))];
    value.root = 2;
    value.version = version;
    value.offset_bytes = first * 4;
    value.type = {DType::f32, kernels::Shape{count}};
    return {value.type, Tier::device, 128 + first * 4, count * 4,
            static_cast<ValueId>(program.values.size()) - 1};
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
  /// Returns the first problem, or "" if there is none.
  [[nodiscard]] std::string problem() const {
    const auto problems = verify(program);
    return problems.empty() ? "" : problems.front();
  }
};

TEST(VerifierOfStorage, AcceptsWhatIsInOrder) { EXPECT_EQ(Storage().problem(), ""); }

/// Hands t on to the next Program: it holds version 0 from the start, and what a read from the disk
/// leaves there must last to the end.
TEST(VerifierOfStorage, KnowsWhatIsHandedOn) {
  Storage s;
  s.program.instructions.erase(s.program.instructions.begin());
  s.program.instructions[0].border_waits = (1u << kQueues) - 2;
  EXPECT_NE(s.problem(), "");
  s.program.values[2].storage = runtime::Storage::handed_on;
  s.program.values[2].role = Role::optimizer;
  EXPECT_EQ(s.problem(), "");

  s.add({Storage::operand(0, 0)}, {s.part("for the next", 0, 16, 1)});
  Instruction& read = s.program.instructions.back();
  read.queue = Queue::disk_read;
  read.border_waits = ((1u << kQueues) - 1) & ~(1u << static_cast<int>(Queue::disk_read));
  read.waits = {0};
  EXPECT_EQ(s.problem(), "");
  const ValueId other = s.temporary("other");
  s.program.values[static_cast<std::size_t>(other)].storage = runtime::Storage::transient;
  s.add({}, {Storage::operand(other, 128)});
  s.program.instructions.back().waits = {1};
  EXPECT_EQ(s.problem(), "'t' is handed on to the next Program, but 'other' overwrote it");
}

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

TEST(VerifierOfStorage, RefusesAnOperandOfAnotherTypeThanItsValue) {
  Storage s;
  s.program.instructions[1].inputs[0].type = {DType::f32, kernels::Shape{8}};
  s.program.instructions[1].inputs[0].bytes = 32;
  EXPECT_EQ(s.problem(),
            "#1 'step 1': 't' is taken for fp32[8] in the device tier, but it is fp32[16] in the "
            "device tier");
}

TEST(VerifierOfStorage, RefusesScratchInThePlaceOfAnOperand) {
  for (const std::int64_t place : {128, 192, 256}) {
    Storage s;
    const ValueId u = s.temporary("u"), scratch = s.temporary("scratch");
    s.add({Storage::operand(2, 128)}, {Storage::operand(u, 192)});
    s.program.instructions.back().workspace = Storage::operand(scratch, place);
    EXPECT_EQ(s.problem(), place == 128   ? "#2 'step 2' has 'scratch' and 't' in one place"
                           : place == 192 ? "#2 'step 2' has 'scratch' and 'u' in one place"
                                          : "");
  }
}

TEST(VerifierOfStorage, RefusesAResultOverAnotherValue) {
  for (const std::int64_t place : {128, 160, 192}) {
    Storage s;
    s.add({Storage::operand(2, 128)}, {Storage::operand(s.temporary("u"), place)});
    EXPECT_EQ(s.problem(), place < 192 ? "#2 'step 2' has 'u' and 't' in one place" : "");
  }
}

TEST(VerifierOfStorage, TakesAResultOverAnInputInItsVeryPlaceOnly) {
  struct {
    std::int64_t first, count;
    bool right;
  } const cases[] = {{0, 8, true}, {0, 12, false}, {4, 8, false}, {8, 8, true}};
  for (const auto& c : cases) {
    Storage s;
    const Operand in = s.part("in", 0, 8, 0), out = s.part("out", c.first, c.count, 1);
    s.add({in}, {out});
    EXPECT_EQ(s.problem(), c.right ? "" : "#2 'step 2' has 'out' and 'in' in one place") << c.first;
  }
}

TEST(VerifierOfStorage, TakesACollectivesOwnPieceInsideTheWhole) {
  for (const bool gather : {false, true}) {
    Storage s;
    const Operand piece = s.part("piece", 4, 4, gather ? 0 : 1);
    const Operand whole = s.part("whole", 0, 16, gather ? 1 : 0);
    s.add({gather ? piece : whole}, {gather ? whole : piece});
    EXPECT_EQ(s.problem(), gather ? "#2 'step 2' has 'whole' and 'piece' in one place"
                                  : "#2 'step 2' has 'piece' and 'whole' in one place");
    s.program.instructions.back().collective.emplace();
    EXPECT_EQ(s.problem(), "");
  }
}

TEST(VerifierOfStorage, RefusesAPredicateThatTheOperationDoesNotKnow) {
  const kernels::Operation plain{.name = "plain", .infer = nullptr, .cost = nullptr};
  Storage s;
  s.program.instructions[1].operation = &plain;
  s.program.instructions[1].predicate = s.program.instructions[1].inputs[0];
  EXPECT_EQ(s.problem(), "#1 'step 1' is predicated, which plain does not know");
}

TEST(VerifierOfStorage, RefusesAPredicateThatIsTooSmall) {
  Storage s;
  Value& flag = s.program.values[static_cast<std::size_t>(s.temporary("flag"))];
  flag.root = 0;
  flag.storage = runtime::Storage::persistent;
  flag.type = {DType::u8, kernels::Shape{2}};
  s.program.instructions[1].predicate = {flag.type, Tier::device, 0, 2, 4};
  EXPECT_EQ(s.problem(), "#1 'step 1' has a predicate of 2 bytes");
}

TEST(VerifierOfStorage, RefusesAPredicateThatNobodyWrote) {
  Storage s;
  s.program.instructions[0].predicate = Storage::operand(2, 128);
  EXPECT_EQ(s.problem(), "#0 'step 0' reads 't' at byte 128 that nobody wrote");
}

TEST(VerifierOfStorage, DoesNotCountOnInstructionsThatMayBeSkipped) {
  Storage s;
  s.program.instructions[0].predicate = Storage::operand(1, 64);
  EXPECT_EQ(s.problem(),
            "#1 'step 1' reads 't' at byte 128, which is written under another condition only");
}

}  // namespace
}  // namespace strata::runtime
