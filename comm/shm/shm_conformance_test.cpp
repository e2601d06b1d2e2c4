#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <vector>

#include "comm/factory.h"
#include "comm/host_stream.h"
#include "comm/testing/conformance.h"
#include "comm/testing/directory_store.h"
#include "comm/testing/forked_ranks.h"
#include "comm/testing/test_arena.h"

namespace strata::comm {
namespace {

RankContext context_of(int rank, int world, const TemporaryFolder& folder) {
  return {.rank = rank,
          .world = world,
          .local_rank = rank,
          .local_world = world,
          .started_by = "test",
          .store = std::make_shared<DirectoryStore>(folder.path())};
}

void run_processes(int world, const RankBody& body, bool closes) {
  const TemporaryFolder folder;
  const std::vector<int> statuses = run_forked(world, [&](int rank) {
    const auto communicator = make_communicator(context_of(rank, world, folder), "auto");
    EXPECT_EQ(communicator->backend(), "shm");
    try {
      body(*communicator);
      if (closes) communicator->close();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << rank << ": " << error.what();
      communicator->abort(error.what());
    }
    return testing::Test::HasFailure() ? 1 : 0;
  });
  for (int rank = 0; rank < world; ++rank) EXPECT_EQ(statuses[rank], 0) << "rank " << rank;
}

std::vector<TestedBackend> backends(std::initializer_list<int> worlds, bool closes) {
  std::vector<TestedBackend> result;
  for (const int world : worlds)
    result.push_back({"shm", world, [closes](int ranks, const RankBody& body) {
                        run_processes(ranks, body, closes);
                      }});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Processes, CommConformance,
                         testing::ValuesIn(backends({2, 3, 4, 8}, true)), backend_name);
INSTANTIATE_TEST_SUITE_P(Processes, CommFailure, testing::ValuesIn(backends({2, 3, 8}, false)),
                         backend_name);

/// Kills rank 1 by SIGKILL; within a second the others must learn its number and where they waited.
void expect_death_noticed(int world, CollectiveKind kind) {
  const TemporaryFolder folder;
  const std::vector<int> statuses = run_forked(world, [&](int rank) {
    const auto communicator = make_communicator(context_of(rank, world, folder), "shm");
    TestArena arena(*communicator, 1 << 16);
    Collective collective{.kind = kind, .input_type = DType::bf16, .wire_type = DType::bf16};
    for (int r = 0; r <= world; ++r) collective.partition.bounds.push_back(r * 10);
    if (kind == CollectiveKind::receive) collective.peer = 1;
    if (rank == 1) ::raise(SIGKILL);
    const auto start = std::chrono::steady_clock::now();
    HostStream stream;
    try {
      communicator->run(stream, collective, arena.take(4096), arena.take(4096), {});
      ADD_FAILURE() << "rank " << rank << " did not notice";
    } catch (const PeerError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("rank 1 (process "), std::string::npos) << text;
      EXPECT_NE(text.find("in collective 1 '" + std::string(name_of(kind)) + " bf16"),
                std::string::npos)
          << text;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
    return testing::Test::HasFailure() ? 1 : 0;
  });
  for (int rank = 0; rank < world; ++rank) {
    if (rank == 1)
      EXPECT_TRUE(WIFSIGNALED(statuses[rank]) && WTERMSIG(statuses[rank]) == SIGKILL);
    else
      EXPECT_EQ(statuses[rank], 0) << "rank " << rank;
  }
}

// Fault 3.
TEST(ShmCommunicator, NamesAKilledRankAndTheCollective) {
  for (const int world : {2, 4}) expect_death_noticed(world, CollectiveKind::reduce_scatter);
  expect_death_noticed(2, CollectiveKind::receive);
}

TEST(ShmCommunicator, RefusesArenasThatPeersCannotMap) {
  const TemporaryFolder folder;
  const std::vector<int> statuses = run_forked(2, [&](int rank) {
    const auto communicator = make_communicator(context_of(rank, 2, folder), "shm");
    std::byte memory[64];
    try {
      // A refused arena ends the communicator of all ranks, even of a peer that is still starting:
      // meet first.
      HostStream stream;
      communicator->run(stream, {.kind = CollectiveKind::barrier}, nullptr, nullptr, {});
      communicator->register_arena({memory, sizeof memory, -1});
      ADD_FAILURE() << "private memory was accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("private memory"), std::string::npos)
          << error.what();
    }
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(statuses, std::vector<int>(2));
}

}  // namespace
}  // namespace strata::comm
