// Groups of rank threads that play hosts.
#include <thread>
#include <vector>

#include "comm/factory.h"
#include "comm/host_stream.h"
#include "comm/hosts/hosts_communicator.h"
#include "comm/testing/checked_collectives.h"
#include "comm/testing/conformance.h"
#include "comm/testing/hosts_traffic.h"
#include "comm/testing/played_layouts.h"
#include "comm/testing/test_arena.h"
#include "core/error.h"

namespace strata::comm {
namespace {

void run_rank(std::unique_ptr<Communicator> communicator, const RankBody& body, bool closes) {
  try {
    body(*communicator);
    if (closes) communicator->close();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "rank " << communicator->rank() << ": " << error.what();
    communicator->abort(error.what());
  }
}

/// Runs the body on all ranks of `layout`; each host has a board of its own.
void run_hosts(const HostLayout& layout, const RankBody& body, bool closes) {
  std::vector<std::thread> threads;
  for (auto& communicator : make_thread_communicators(layout))
    threads.emplace_back(run_rank, std::move(communicator), std::cref(body), closes);
  for (std::thread& thread : threads) thread.join();
}

std::vector<TestedBackend> backends(bool closes) {
  return backends_on_hosts({.name = "hosts", .ranks_share_process = true},
                           [closes](const HostLayout& layout, const RankBody& body) {
                             run_hosts(layout, body, closes);
                           });
}

INSTANTIATE_TEST_SUITE_P(ThreadHosts, CommConformance, testing::ValuesIn(backends(true)),
                         backend_name);
INSTANTIATE_TEST_SUITE_P(ThreadHosts, CommFailure, testing::ValuesIn(backends(false)),
                         backend_name);

TEST(HostsCommunicator, SendsEachByteToAHostOnce) {
  for (const NamedLayout& named : played_layouts()) {
    run_hosts(
        named.layout,
        [&](Communicator& communicator) {
          const HostsTraffic traffic = measure_traffic(communicator, named.layout, [&] {
            return dynamic_cast<HostsCommunicator&>(communicator).sent_to_hosts();
          });
          if (communicator.rank() != 0) return;
          EXPECT_LE(static_cast<double>(traffic.sent), 1.03 * static_cast<double>(traffic.least))
              << named.name << ": " << traffic.sent << " bytes, at least " << traffic.least;
          EXPECT_GE(traffic.sent, traffic.least);
          testing::Test::RecordProperty("hosts" + named.name + "_ratio",
                                        std::to_string(static_cast<double>(traffic.sent) /
                                                       static_cast<double>(traffic.least)));
        },
        true);
  }
}

/// More ranks than one rank could add contributions of at a time.
TEST(HostsCommunicator, SumsOf136Ranks) {
  HostLayout layout{{}, 136};
  Partition partition{{0}};
  for (int rank = 0; rank < layout.world; ++rank) {
    if (rank % 8 == 0) layout.first_ranks.push_back(rank);
    partition.bounds.push_back(partition.total() + 20 + rank % 3);
  }
  run_hosts(
      layout,
      [&](Communicator& communicator) {
        TestArena arena(communicator, 1 << 20);
        for (const CollectiveKind kind :
             {CollectiveKind::reduce_scatter, CollectiveKind::all_gather})
          run_checked(communicator, arena,
                      {.kind = kind, .wire_type = DType::bf16, .partition = partition}, 1);
        arena.close();
      },
      true);
}

TEST(HostsCommunicator, ARankMayLeaveOnceItHasDoneItsPart) {
  for (int round = 0; round < 100 && !testing::Test::HasFailure(); ++round)
    run_hosts(
        {{0, 1, 2, 3}, 4},
        [](Communicator& communicator) {
          HostStream stream;
          for (int call = 0; call < 3; ++call)
            communicator.run(stream, {.kind = CollectiveKind::barrier}, nullptr, nullptr, {});
        },
        false);
}

// Fault 8.
TEST(HostsCommunicator, NamesCollectivesThatDifferBetweenHosts) {
  run_hosts(
      {{0, 2}, 4},
      [](Communicator& communicator) {
        TestArena arena(communicator, 4096);
        Collective collective = integer_sum(1, 4);
        if (communicator.rank() >= 2) collective.kind = CollectiveKind::broadcast;
        std::byte workspace[64];
        HostStream stream;
        std::byte* data = arena.take(8);
        try {
          communicator.run(stream, collective, data, data, workspace);
          ADD_FAILURE() << "a difference went unnoticed";
        } catch (const Error& error) {
          const std::string text = error.what();
          EXPECT_NE(text.find("rank 0 runs 'all_reduce"), std::string::npos) << text;
          EXPECT_NE(text.find("rank 2 runs 'broadcast"), std::string::npos) << text;
        }
      },
      false);
}

}  // namespace
}  // namespace strata::comm
