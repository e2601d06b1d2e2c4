#include "runtime/program/waits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "comm/factory.h"
#include "runtime/program/arena_alignment.h"
#include "runtime/program/lower.h"
#include "runtime/program/verifier.h"
#include "runtime/testing/hand_made.h"
#include "runtime/testing/small_model.h"

namespace strata::runtime {
namespace {

/// Makes a Program of `count` instructions on random queues that touch random ranges of an arena.
Program random_program(std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  Program program;
  program.arena_bytes.fill(512);
  program.persistent_bytes.fill(512);
  Value root;
  root.storage = Storage::persistent;
  root.type = kernels::TensorType(DType::u8, kernels::Shape{512});
  program.values.push_back(root);
  const auto operand = [&] {
    Value view;
    view.root = 0;
    view.offset_bytes = below(480);
    view.type = kernels::TensorType(DType::u8, kernels::Shape{1 + below(32)});
    program.values.push_back(view);
    return Operand{view.type, Tier::device, view.offset_bytes, view.type.span_bytes(),
                   static_cast<ValueId>(program.values.size()) - 1};
  };
  for (int i = 0; i < count; ++i) {
    Instruction in;
    in.operation = &kernels::find_operation("copy");
    in.queue = static_cast<Queue>(below(kQueues));
    in.label = std::to_string(i);
    for (std::int64_t k = below(3); k > 0; --k) in.inputs.push_back(operand());
    for (std::int64_t k = below(3); k > 0; --k) in.outputs.push_back(operand());
    if (below(4) == 0) in.workspace = operand();
    if (below(4) == 0) in.predicate = operand();
    program.instructions.push_back(std::move(in));
  }
  return program;
}

/// Returns the verifier's complaints about order alone. Random ranges have no versions.
std::vector<std::string> unordered(const Program& program) {
  std::vector<std::string> problems = verify(program);
  std::erase_if(problems, [](const std::string& problem) {
    return problem.find("unordered") == std::string::npos;
  });
  return problems;
}

TEST(PlaceWaits, OrdersEveryConflictOfRandomPrograms) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Program program = random_program(seed, 40);
    place_waits(program);
    EXPECT_EQ(unordered(program), std::vector<std::string>{}) << "seed " << seed;
  }
}

/// A small value comes from the disk to where a larger one, dead since, ended: the rest of its
/// sector overlaps what was read there last.
TEST(PlaceWaits, OrdersWhatSharesASectorWithATransfer) {
  Program program = random_program(1, 0);
  program.arena_bytes.fill(3 * kDiskAlignment);
  const auto operand = [&](Tier tier, std::int64_t begin, std::int64_t bytes) {
    Value value;
    value.tier = tier;
    value.type = kernels::TensorType(DType::u8, kernels::Shape{bytes});
    program.values.push_back(value);
    return Operand{value.type, tier, begin, bytes, static_cast<ValueId>(program.values.size()) - 1};
  };
  Instruction reader = hand_made(Queue::host, "reader");
  reader.inputs = {operand(Tier::pinned, kDiskAlignment + 400, 100)};
  Instruction transfer = hand_made(Queue::disk_read, "transfer");
  kernels::Operation from_disk = kernels::find_operation("copy");
  from_disk.run_by = kernels::RunBy::disk;
  transfer.operation = &from_disk;
  transfer.inputs = {operand(Tier::disk, 0, 200)};
  transfer.outputs = {operand(Tier::pinned, kDiskAlignment, 200)};
  program.instructions = {reader, transfer};
  EXPECT_EQ(unordered(program).size(), 1U);
  place_waits(program);
  EXPECT_EQ(program.instructions[1].waits, std::vector<std::int32_t>{0});
  EXPECT_EQ(unordered(program), std::vector<std::string>{});
  transfer.operation = &kernels::find_operation("copy");
  program.instructions = {reader, transfer};
  place_waits(program);
  EXPECT_TRUE(program.instructions[1].waits.empty()) << "a copy moves its operand's bytes alone";
}

/// A transfer takes the rest of its last sector from a value that is still needed.
TEST(PlaceWaits, CannotSaveWhatATransferOverwrites) {
  Program program = random_program(1, 0);
  program.arena_bytes.fill(3 * kDiskAlignment);
  program.persistent_bytes.fill(0);
  program.values.clear();
  const auto operand = [&](const char* name, Tier tier, std::int64_t begin) {
    Value value;
    value.name = name;
    value.tier = tier;
    value.type = kernels::TensorType(DType::u8, kernels::Shape{200});
    program.values.push_back(value);
    return Operand{value.type, tier, begin, 200, static_cast<ValueId>(program.values.size()) - 1};
  };
  kernels::Operation from_disk = kernels::find_operation("copy");
  from_disk.run_by = kernels::RunBy::disk;
  Instruction writer = hand_made(Queue::host, "writer");
  writer.outputs = {operand("neighbour", Tier::pinned, kDiskAlignment + 400)};
  Instruction transfer = hand_made(Queue::disk_read, "transfer");
  transfer.operation = &from_disk;
  transfer.outputs = {operand("read", Tier::pinned, kDiskAlignment)};
  Instruction reader = hand_made(Queue::host, "reader");
  reader.inputs = writer.outputs;
  program.instructions = {writer, transfer, reader};
  place_waits(program);
  const auto finds = [&](const std::string& words) {
    const std::vector<std::string> problems = verify(program);
    return std::ranges::any_of(problems, [&](const std::string& problem) {
      return problem.find(words) != std::string::npos;
    });
  };
  EXPECT_TRUE(finds("that 'read' overwrote"));
  EXPECT_FALSE(finds("leaves the pinned arena"));
  program.arena_bytes.fill(kDiskAlignment + 700);
  EXPECT_TRUE(finds("transfer' leaves the pinned arena"));
}

TEST(PlaceWaits, PlacesNoneThatCouldBeLeftOut) {
  int waits = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Program program = random_program(seed, 30);
    place_waits(program);
    for (std::size_t i = 0; i < program.instructions.size(); ++i)
      for (std::size_t w = 0; w < program.instructions[i].waits.size(); ++w, ++waits) {
        Program fewer = program;
        auto& list = fewer.instructions[i].waits;
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(w));
        EXPECT_FALSE(unordered(fewer).empty()) << "seed " << seed << " instruction " << i;
      }
  }
  EXPECT_GT(waits, 100);
}

TEST(PlaceWaits, NamesEarlierInstructionsOfOtherQueuesOnly) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Program program = random_program(seed, 40);
    place_waits(program);
    for (std::int32_t i = 0; i < 40; ++i)
      for (std::int32_t w : program.instructions[i].waits) {
        EXPECT_LT(w, i);
        EXPECT_NE(program.instructions[w].queue, program.instructions[i].queue);
      }
  }
}

TEST(PlaceWaits, LetsIndependentInstructionsRunFreely) {
  Program program = random_program(1, 2);
  for (Instruction& in : program.instructions) {
    in.outputs.clear();
    in.workspace.reset();
  }
  program.instructions[0].queue = Queue::compute;
  program.instructions[1].queue = Queue::communication;
  place_waits(program);
  EXPECT_TRUE(program.instructions[1].waits.empty());  // both only read
}

TEST(PlaceWaits, MakesEachQueueWaitOnceForTheProgramBefore) {
  const auto communicators = comm::make_thread_communicators(2);
  Graph graph = relay(4, 64, 2);
  PersistentLayout layout;
  layout.add_all(graph);
  const Program program =
      lower(std::move(graph), layout, {"relay", {}, comm::MeshSeat::of(communicators[0]->seat())});
  std::array<int, kQueues> border{};
  for (const Instruction& in : program.instructions)
    if (in.border_waits != 0) ++border[static_cast<int>(in.queue)];
  EXPECT_EQ(border, (std::array<int, kQueues>{1, 1}));  // the other queues are unused
}

}  // namespace
}  // namespace strata::runtime
