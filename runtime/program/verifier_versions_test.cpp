// Tests the verifier's replay of versions, with Programs of a few instructions on one queue.
#include <gtest/gtest.h>

#include "runtime/program/verifier.h"

namespace strata::runtime {
namespace {

using kernels::Shape;
using kernels::TensorType;

constexpr int kDevice = static_cast<int>(Tier::device);
const kernels::Operation kStep{
    .name = "step", .infer = nullptr, .cost = nullptr, .predicated = true};
const TensorType kWhole{DType::f32, Shape{4, 12}};

/// Builds a Program with persistent "kept" at 0, transient "temporary" at 192, each fp32 [4, 12].
class Versions {
 public:
  Versions() {
    program_.name = "test";
    program_.blocks = {"block"};
    program_.persistent_bytes[kDevice] = 192;
    program_.arena_bytes[kDevice] = 384;
    for (const char* name : {"kept", "temporary"}) {
      Value value;
      value.name = name;
      value.type = kWhole;
      value.storage = name[0] == 'k' ? Storage::persistent : Storage::transient;
      value.role = Role::activation;
      program_.values.push_back(value);
    }
  }

  void set_role(Role role) { program_.values[0].role = role; }

  static constexpr ValueId kKept = 0, kTemporary = 1;

  /// Makes an operand of `root` at `version`: all, or what `type` covers from `offset_bytes` on.
  Operand at(ValueId root, std::int32_t version, const TensorType& type = kWhole,
             std::int64_t offset_bytes = 0) {
    Value value = program_.values[root];
    value.root = root;
    value.version = version;
    value.type = type;
    value.offset_bytes = offset_bytes;
    program_.values.push_back(value);
    return {type, Tier::device, (root == kKept ? 0 : 192) + offset_bytes, type.span_bytes(),
            static_cast<ValueId>(program_.values.size()) - 1};
  }
  /// Makes an operand of columns [first, first + count) of each row.
  Operand columns(ValueId root, std::int32_t version, std::int64_t first, std::int64_t count) {
    return at(root, version, TensorType(DType::f32, Shape{4, count}, 12), first * 4);
  }
  /// Makes an operand of elements [first, first + count) of the whole.
  Operand elements(ValueId root, std::int32_t version, std::int64_t first, std::int64_t count) {
    return at(root, version, TensorType(DType::f32, Shape{count}), first * 4);
  }

  Versions& add(std::vector<Operand> inputs, std::vector<Operand> outputs) {
    Instruction in;
    in.operation = &kStep;
    in.label = "step " + std::to_string(program_.instructions.size());
    in.inputs = std::move(inputs);
    in.outputs = std::move(outputs);
    if (program_.instructions.empty()) in.border_waits = (1u << kQueues) - 2;
    program_.instructions.push_back(std::move(in));
    return *this;
  }
  Versions& add_collective(Operand input, Operand output) {
    add({std::move(input)}, {std::move(output)});
    program_.instructions.back().collective.emplace();
    return *this;
  }
  /// Adds an instruction that may be skipped.
  Versions& add_predicated(std::vector<Operand> inputs, std::vector<Operand> outputs) {
    add(std::move(inputs), std::move(outputs));
    program_.instructions.back().predicate = elements(kKept, 0, 47, 1);
    return *this;
  }
  [[nodiscard]] std::string problem() const {
    const auto problems = verify(program_);
    return problems.empty() ? "" : problems.front();
  }

 private:
  Program program_;
};

constexpr ValueId kKept = Versions::kKept, kTemporary = Versions::kTemporary;

TEST(VerifierOfVersions, AcceptsAChainInPlace) {
  Versions v;
  v.add({v.at(kKept, 0)}, {v.at(kTemporary, 0)});
  v.add({v.at(kTemporary, 0)}, {v.at(kTemporary, 1)});
  v.add({v.at(kTemporary, 1), v.at(kKept, 0)}, {v.at(kKept, 1)});
  v.add({v.at(kKept, 1)}, {});
  EXPECT_EQ(v.problem(), "");
}

TEST(VerifierOfVersions, RefusesAReaderAfterTheUpdate) {
  Versions v;
  v.add({v.at(kKept, 0)}, {v.at(kKept, 1)});
  v.add({v.at(kKept, 0)}, {});
  EXPECT_EQ(v.problem(), "#1 'step 1' reads version 0 of 'kept' at byte 0, which holds version 1");
}

TEST(VerifierOfVersions, RefusesAReaderBeforeTheUpdate) {
  Versions v;
  v.add({v.at(kKept, 1)}, {});
  v.add({v.at(kKept, 0)}, {v.at(kKept, 1)});
  EXPECT_EQ(v.problem(), "#0 'step 0' reads version 1 of 'kept' at byte 0, which holds version 0");
}

TEST(VerifierOfVersions, RefusesUpdatesInTheWrongOrder) {
  Versions v;
  v.add({}, {v.at(kKept, 2)});
  v.add({}, {v.at(kKept, 1)});
  EXPECT_EQ(v.problem(), "#1 'step 1' writes version 1 of 'kept' at byte 0, which holds version 2");
}

TEST(VerifierOfVersions, RefusesToWriteOneVersionTwice) {
  Versions v;
  v.add({}, {v.at(kTemporary, 0)});
  v.add({}, {v.elements(kTemporary, 0, 16, 4)});
  EXPECT_EQ(v.problem(),
            "#1 'step 1' writes version 0 of 'temporary' at byte 256, which holds version 0");
}

TEST(VerifierOfVersions, RefusesTwoResultsInOnePlace) {
  Versions v;
  v.add({}, {v.elements(kTemporary, 0, 0, 8), v.elements(kTemporary, 0, 4, 8)});
  EXPECT_EQ(v.problem(), "#0 'step 0' has 'temporary' and 'temporary' in one place");
}

TEST(VerifierOfVersions, TilesMakeAWholeAndAMissingOneIsFound) {
  for (const bool all : {true, false}) {
    Versions v;
    for (std::int64_t tile : {0, 16, 32})
      if (all || tile != 16)
        v.add({v.elements(kKept, 0, tile, 16)}, {v.elements(kKept, 1, tile, 16)});
    v.add({v.at(kKept, 1)}, {});
    EXPECT_EQ(v.problem(),
              all ? "" : "#2 'step 2' reads version 1 of 'kept' at byte 64, which holds version 0");
  }
}

TEST(VerifierOfVersions, APartMayBeAheadOfTheWholeThatIsWrittenNext) {
  // The rank writes its own part of a value that is then gathered in place.
  Versions v;
  v.add({v.elements(kKept, 0, 16, 16)}, {v.elements(kKept, 1, 16, 16)});
  v.add_collective(v.elements(kKept, 1, 16, 16), v.at(kKept, 2));
  v.add({v.at(kKept, 2)}, {});
  EXPECT_EQ(v.problem(), "");
}

TEST(VerifierOfVersions, SeesBetweenTheRowsOfAView) {
  Versions v;
  v.add({}, {v.at(kTemporary, 0)});
  v.add({v.columns(kTemporary, 0, 0, 6)}, {v.columns(kTemporary, 1, 0, 6)});
  v.add({v.columns(kTemporary, 1, 0, 6), v.columns(kTemporary, 0, 6, 6)}, {});
  EXPECT_EQ(v.problem(), "");
  Versions part = v;
  part.add({part.columns(kTemporary, 0, 5, 2)}, {});
  EXPECT_EQ(part.problem(),
            "#3 'step 3' reads version 0 of 'temporary' at byte 212, which holds version 1");
  Versions rows = v;  // row 2 alone, as elements
  rows.add({rows.elements(kTemporary, 0, 30, 6), rows.elements(kTemporary, 1, 24, 7)}, {});
  EXPECT_EQ(rows.problem(),
            "#3 'step 3' reads version 1 of 'temporary' at byte 312, which holds version 0");
  Versions other = v;  // a view with another stride: elements 0, 1, 16, 17, 32, 33
  other.add({other.at(kTemporary, 1, TensorType(DType::f32, Shape{3, 2}, 16))}, {});
  EXPECT_EQ(other.problem(),
            "#3 'step 3' reads version 1 of 'temporary' at byte 320, which holds version 0");
}

TEST(VerifierOfVersions, ASkippedUpdateIsAVersionToo) {
  Versions v;
  v.add_predicated({v.elements(kKept, 0, 0, 16)}, {v.elements(kKept, 1, 0, 16)});
  v.add({v.elements(kKept, 1, 0, 16)}, {v.at(kTemporary, 0)});
  v.add_predicated({v.at(kTemporary, 0)}, {v.at(kTemporary, 1)});
  v.add({v.at(kTemporary, 1)}, {});
  EXPECT_EQ(v.problem(), "");
}

/// Content that is first written under a predicate may be read under the same one, also if the
/// reader has it as a copy.
TEST(VerifierOfVersions, FirstContentHoldsUnderItsOwnPredicate) {
  Versions v;
  v.add_predicated({}, {v.elements(kTemporary, 0, 0, 16)});
  v.add_predicated({v.elements(kTemporary, 0, 0, 16)}, {});
  EXPECT_EQ(v.problem(), "");
}

TEST(VerifierOfVersions, WhatMayBeSkippedGivesNoFirstContent) {
  Versions v;
  v.add({}, {v.elements(kTemporary, 0, 0, 16)});
  v.add_predicated({}, {v.at(kTemporary, 1)});
  v.add({v.elements(kTemporary, 1, 0, 16)}, {});
  EXPECT_EQ(v.problem(), "");
  v.add({v.elements(kTemporary, 1, 8, 16)}, {});
  EXPECT_EQ(v.problem(),
            "#3 'step 3' reads 'temporary' at byte 256, which is written under another "
            "condition only");
}

TEST(VerifierOfVersions, AParameterEndsWithOneVersion) {
  for (const Role role : {Role::parameter, Role::optimizer, Role::gradient}) {
    Versions v;
    v.set_role(role);
    v.add({}, {v.elements(kKept, 1, 0, 40)});
    EXPECT_EQ(v.problem(), role == Role::gradient
                               ? ""
                               : "'kept' ends with version 0 at byte 160 and version 1 before it");
  }
}

}  // namespace
}  // namespace strata::runtime
