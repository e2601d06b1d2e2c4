// Breaks small Programs in each way that the verifier claims to catch.
// tests/training/program_safety_test.cpp does the same to Programs of whole training steps.
#include "runtime/program/verifier.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "comm/factory.h"
#include "runtime/passes/order.h"
#include "runtime/program/lower.h"
#include "runtime/testing/small_model.h"

namespace strata::runtime {
namespace {

constexpr int kWorld = 2;
constexpr std::int64_t kElements = 256;

Program relay_program(int links = 5) {
  const auto communicators = comm::make_thread_communicators(kWorld);
  Graph graph = relay(links, kElements, kWorld);
  TransferLimits limits;
  limits.prefetch_elements = 2 * kElements;
  hoist_gathers(graph, limits);
  PersistentLayout layout;
  layout.add_all(graph);
  return lower(std::move(graph), layout,
               {"relay", {}, comm::MeshSeat::of(communicators[0]->seat())});
}

/// Returns the index of the instruction with this label.
std::size_t find(const Program& program, const std::string& label) {
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    if (program.instructions[i].label == label) return i;
  throw std::runtime_error("no instruction " + label);
}

void expect_problem(const Program& program, const std::string& words) {
  const auto problems = verify(program);
  ASSERT_FALSE(problems.empty()) << "nothing found; expected: " << words;
  bool found = false;
  for (const std::string& problem : problems)
    found = found || problem.find(words) != std::string::npos;
  EXPECT_TRUE(found) << "expected: " << words << "\nfirst problem: " << problems.front();
}

TEST(Verifier, AcceptsWhatTheLoweringMakes) {
  EXPECT_EQ(verify(relay_program()), std::vector<std::string>{});
}

TEST(Verifier, FindsEveryDroppedWait) {
  const Program program = relay_program();
  int waits = 0;
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    for (std::size_t w = 0; w < program.instructions[i].waits.size(); ++w, ++waits) {
      Program broken = program;
      auto& list = broken.instructions[i].waits;
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(w));
      expect_problem(broken, "unordered");
    }
  EXPECT_GE(waits, 6);
}

TEST(Verifier, FindsWaitsThatAreNotEarlier) {
  const Program program = relay_program();
  const auto index = static_cast<std::int32_t>(find(program, "add 1"));
  for (std::int32_t wrong : {index, index + 1, 1000, -1}) {
    Program broken = program;
    broken.instructions[static_cast<std::size_t>(index)].waits.push_back(wrong);
    expect_problem(broken, "which is not earlier");
  }
}

TEST(Verifier, FindsEveryMovedOperand) {
  const Program program = relay_program();
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    for (std::int64_t by : {-64, -4, 4, 64, 4096}) {
      const auto expect_found = [&](std::vector<Operand> Instruction::*list) {
        for (std::size_t k = 0; k < (program.instructions[i].*list).size(); ++k) {
          Program broken = program;
          (broken.instructions[i].*list)[k].offset_bytes += by;
          // A value that occurs once has no second place to compare with. If it is moved, it must
          // still stay clear of all others, which the checks of order and contents decide.
          const ValueId value = (program.instructions[i].*list)[k].value;
          const std::string& name = program.values[value].name;
          if (name.starts_with("shard") || name == "result" || name == "start") continue;
          EXPECT_FALSE(verify(broken).empty())
              << "instruction " << i << " '" << program.instructions[i].label << "' operand " << k
              << " moved by " << by;
        }
      };
      expect_found(&Instruction::inputs);
      expect_found(&Instruction::outputs);
    }
}

TEST(Verifier, FindsPersistentValuesThatOverlap) {
  Program broken = relay_program();
  Operand& shard = broken.instructions[find(broken, "gather 2")].inputs[0];
  shard.offset_bytes = broken.instructions[find(broken, "gather 3")].inputs[0].offset_bytes;
  expect_problem(broken, "overlap at device byte");
  shard.offset_bytes += 64;
  expect_problem(broken, "overlap at device byte");
}

TEST(Verifier, FindsPersistentValuesOutsideTheirStorage) {
  Program broken = relay_program();
  broken.instructions[find(broken, "reduce")].outputs[0].offset_bytes = broken.persistent_bytes[0];
  expect_problem(broken, "leaves persistent storage");
}

TEST(Verifier, FindsTransientValuesInPersistentStorage) {
  Program broken = relay_program();
  broken.persistent_bytes[0] += 64;
  expect_problem(broken, "lies in persistent storage");
}

TEST(Verifier, FindsAnArenaThatIsTooSmall) {
  Program broken = relay_program();
  broken.arena_bytes[0] -= 1;
  expect_problem(broken, "leaves the device arena");
  broken = relay_program();
  broken.instructions[0].outputs[0].offset_bytes = -64;
  expect_problem(broken, "leaves the device arena");
}

TEST(Verifier, FindsValuesThatNobodyWrote) {
  Program broken = relay_program();
  const std::size_t copy = find(broken, "copy start");
  broken.instructions[copy].outputs = broken.instructions[copy].inputs;
  expect_problem(broken, "nobody wrote");
}

TEST(Verifier, FindsValuesThatWereOverwritten) {
  // Two parameters needed at different times: one is placed where the other still lives.
  Program broken = relay_program();
  const auto place = [&](const std::string& link) -> std::vector<Operand*> {
    return {&broken.instructions[find(broken, "gather " + link)].outputs[0],
            &broken.instructions[find(broken, "add " + link)].inputs[1]};
  };
  ASSERT_LT(find(broken, "gather 1"), find(broken, "add 0"));  // both are alive at "add 0"
  for (Operand* operand : place("1")) operand->offset_bytes = place("0")[0]->offset_bytes;
  expect_problem(broken, "overwrote");
}

TEST(Verifier, FindsSwappedInstructions) {
  const Program program = relay_program();
  for (const auto& [early, late] : std::vector<std::pair<std::string, std::string>>{
           {"gather 0", "add 0"}, {"copy start", "add 0"}, {"add 4", "reduce"}}) {
    Program broken = program;
    std::swap(broken.instructions[find(program, early)], broken.instructions[find(program, late)]);
    EXPECT_FALSE(verify(broken).empty()) << early << " and " << late;
  }
}

TEST(Verifier, FindsAQueueThatDoesNotWaitForTheProgramBefore) {
  const Program program = relay_program();
  int borders = 0;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    if (program.instructions[i].border_waits == 0) continue;
    Program broken = program;
    broken.instructions[i].border_waits = 0;
    expect_problem(broken, "without waiting for the previous Program");
    ++borders;
  }
  EXPECT_EQ(borders, 2);  // the queues that it uses
}

TEST(Verifier, FindsAQueueThatWaitsForAllButOneOfTheProgramBefore) {
  const Program program = relay_program();
  int waits = 0;
  for (std::size_t i = 0; i < program.instructions.size(); ++i)
    for (int queue = 0; queue < kQueues; ++queue) {
      const std::uint32_t bit = 1u << queue;
      if ((program.instructions[i].border_waits & bit) == 0) continue;
      Program broken = program;
      broken.instructions[i].border_waits &= ~bit;
      expect_problem(broken, "without waiting for the previous Program");
      ++waits;
    }
  EXPECT_EQ(waits, 2 * (kQueues - 1));
}

TEST(Verifier, ListsAtMostTwentyProblems) {
  Program broken = relay_program(60);
  for (Instruction& in : broken.instructions) in.waits.clear();
  EXPECT_EQ(verify(broken).size(), 20u);
}

}  // namespace
}  // namespace strata::runtime
