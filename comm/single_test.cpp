#include "comm/single.h"

#include "comm/arena_table.h"
#include "comm/factory.h"
#include "comm/host_stream.h"
#include "comm/testing/conformance.h"

namespace strata::comm {
namespace {

void run_single(int /*world*/, const RankBody& body) {
  const auto communicator = make_communicator(RankContext{}, "auto");
  EXPECT_EQ(communicator->backend(), "single");
  body(*communicator);
  communicator->close();
}

INSTANTIATE_TEST_SUITE_P(Single, CommConformance,
                         testing::Values(TestedBackend{"single", 1, run_single}), backend_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommFailure);

TEST(SingleCommunicator, DoesNothingAfterAbort) {
  SingleCommunicator communicator;
  communicator.abort("stop", ExitCode::internal);
  HostStream stream;
  EXPECT_THROW(communicator.run(stream, {}, nullptr, nullptr, {}), PeerError);
}

TEST(ArenaTable, AnArenaKeepsItsNumberUntilItIsRemoved) {
  alignas(64) std::byte memory[192];
  ArenaTable table;
  const int first = table.add({memory, 64, -1}), second = table.add({memory + 128, 64, -1});
  EXPECT_NE(first, second);
  EXPECT_EQ(table.locate(memory + 16, 48, "collective", "input").arena, first);
  EXPECT_EQ(table.locate(memory + 160, 8, "collective", "input").arena, second);
  EXPECT_EQ(table.locate(memory + 160, 8, "collective", "input").offset_bytes, 32);
  EXPECT_EQ(table.remove(memory), first);
  EXPECT_EQ(table.locate(memory + 128, 64, "collective", "input").arena, second);
  const int third = table.add({memory, 64, -1});
  EXPECT_TRUE(third != first && third != second) << "a number means another arena";
}

TEST(SingleCommunicatorDeathTest, EndsOnOperandsOutsideItsArenas) {
  SingleCommunicator communicator;
  alignas(64) std::byte arena[256];
  communicator.register_arena({arena, 128, -1});
  HostStream stream;
  Collective gather{.kind = CollectiveKind::all_gather, .partition = {{0, 16}}};
  communicator.run(stream, gather, arena, arena + 64, {});
  // The output ends at the arena's end, then one element after it.
  EXPECT_DEATH(
      communicator.run(stream, gather, arena, arena + 68, {}),
      "all_gather fp32, 16 elements over 1 ranks output of 64 bytes .* no registered arena");
  communicator.unregister_arena(arena);
  EXPECT_DEATH(communicator.run(stream, gather, arena, arena + 64, {}), "no registered arena");
}

}  // namespace
}  // namespace strata::comm
