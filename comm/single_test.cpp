#include "comm/single.h"

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

TEST(SingleCommunicatorDeathTest, EndsOnOperandsOutsideItsArenas) {
  SingleCommunicator communicator;
  alignas(64) std::byte arena[256];
  communicator.register_arena({arena, 128, -1});
  HostStream stream;
  Collective gather{.kind = CollectiveKind::all_gather, .partition = {{0, 16}}};
  communicator.run(stream, gather, arena, arena + 64, {});
  // Ends at the border, and one element behind it.
  EXPECT_DEATH(
      communicator.run(stream, gather, arena, arena + 68, {}),
      "all_gather fp32, 16 elements over 1 ranks output of 64 bytes .* no registered arena");
  communicator.unregister_arena(arena);
  EXPECT_DEATH(communicator.run(stream, gather, arena, arena + 64, {}), "no registered arena");
}

}  // namespace
}  // namespace strata::comm
