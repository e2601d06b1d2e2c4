// Tests of the communicator over a stand-in for NCCL, with kernels on the simulated device.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "comm/factory.h"
#include "comm/host_stream.h"
#include "comm/testing/conformance.h"
#include "comm/testing/fake_nccl.h"
#include "comm/testing/hosts_traffic.h"
#include "comm/testing/played_layouts.h"
#include "comm/testing/simulated_nccl.h"
#include "comm/testing/test_arena.h"
#include "comm/testing/test_watch.h"
#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::comm {
namespace {

std::string gpu(int rank) { return "GPU " + std::to_string(rank); }

/// Runs `body` for each rank on a thread of its own, with the rank's host communicator.
void run_threads(std::vector<std::unique_ptr<Communicator>> hosts, const RankBody& body) {
  std::vector<std::thread> threads;
  for (auto& host : hosts)
    threads.emplace_back([&body, &host] {
      try {
        body(*host);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << host->rank() << ": " << error.what();
        host->abort(error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
}

void run_threads(int world, const RankBody& body) {
  run_threads(make_thread_communicators(world), body);
}

/// Runs `body` with an NcclCommunicator for each rank.
void run_nccl(std::vector<std::unique_ptr<Communicator>> hosts, const RankBody& body) {
  run_threads(std::move(hosts), [&body](Communicator& host) {
    SimulatedNccl nccl(host, gpu(host.rank()));
    body(nccl);
    nccl.close();
    host.close();
  });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

void run_ranks(int world, const RankBody& body) {
  run_nccl(make_thread_communicators(world), body);
}

std::vector<TestedBackend> backends() {
  std::vector<TestedBackend> result;
  for (const int world : {1, 2, 3, 4}) result.push_back({"nccl", world, run_ranks, true, true});
  return result;
}

std::vector<TestedBackend> backends_on_played_hosts() {
  return backends_on_hosts({.name = "nccl", .ranks_share_process = true, .simulates_kernels = true},
                           [](const HostLayout& layout, const RankBody& body) {
                             run_nccl(make_thread_communicators(layout), body);
                           });
}

INSTANTIATE_TEST_SUITE_P(NcclOnHosts, CommConformance,
                         testing::ValuesIn(backends_on_played_hosts()), backend_name);
INSTANTIATE_TEST_SUITE_P(Nccl, CommConformance, testing::ValuesIn(backends()), backend_name);
// Collectives only enqueue here: errors appear in check.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommFailure);

TEST(NcclCommunicatorTest, NativeSumsAreSumsInAnotherOrder) {
  constexpr int kWorld = 3;
  constexpr std::int64_t kElements = 1000;
  for (const DType wire : {DType::f32, DType::bf16, DType::f16})
    run_threads(kWorld, [wire](Communicator& host) {
      SimulatedNccl nccl(host, gpu(host.rank()), Reduction::native);
      TestArena arena(nccl, 1 << 16);
      const Collective mean{.kind = CollectiveKind::reduce_scatter,
                            .wire_type = wire,
                            .partition = {{0, 100, 700, kElements}},
                            .scale = 1.0f / kWorld};
      auto* input = reinterpret_cast<float*>(arena.take(kElements * 4));
      const std::int64_t begin = mean.partition.begin(host.rank()),
                         mine = mean.partition.count(host.rank());
      auto* output = reinterpret_cast<float*>(arena.take(mine * 4));
      std::byte* workspace = arena.take(nccl.workspace_bytes(mean));
      const auto value = [](int rank, std::int64_t i) {
        return static_cast<float>((i * 37 + rank * 11) % 101) / 16.0f - 3.0f;
      };
      for (std::int64_t i = 0; i < kElements; ++i) input[i] = value(host.rank(), i);
      HostStream stream;
      nccl.run(stream, mean, reinterpret_cast<std::byte*>(input),
               reinterpret_cast<std::byte*>(output),
               {workspace, static_cast<std::size_t>(nccl.workspace_bytes(mean))});
      for (std::int64_t i = 0; i < mine; ++i) {
        float sum = 0;
        for (int rank = 0; rank < kWorld; ++rank) sum += value(rank, begin + i);
        EXPECT_NEAR(output[i], sum / kWorld, wire == DType::f32 ? 1e-6 : 0.05) << begin + i;
      }
      nccl.close();
      host.close();
    });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

/// The bytes that a rank has sent to ranks of other hosts.
std::int64_t sent_abroad(const HostLayout& layout, int rank) {
  std::int64_t bytes = 0;
  for (int peer = 0; peer < layout.world; ++peer)
    if (layout.host_of(peer) != layout.host_of(rank)) bytes += fake_nccl_sent_bytes(rank, peer);
  return bytes;
}

TEST(NcclCommunicatorTest, SendsEachByteToAHostOnce) {
  for (const auto& [name, layout] : played_layouts())
    run_nccl(make_thread_communicators(layout),
             [&, &layout = layout, &name = name](Communicator& nccl) {
               const HostsTraffic traffic =
                   measure_traffic(nccl, layout, [&] { return sent_abroad(layout, nccl.rank()); });
               EXPECT_EQ(traffic.sent, traffic.least) << name;
             });
}

TEST(NcclCommunicatorTest, RecordsOnAllRanksOrOnNone) {
  for (const int failing : {-1, 0, 2})
    run_ranks(3, [failing](Communicator& nccl) {
      EXPECT_EQ(nccl.all_have_recorded(nccl.rank() != failing), failing < 0);
    });
}

TEST(NcclCommunicatorTest, RefusesTwoRanksOnOneGpuOnAllRanks) {
  run_threads(3, [](Communicator& host) {
    EXPECT_EQ(message_of<InvalidArgument>(
                  [&] { SimulatedNccl nccl(host, host.rank() == 0 ? gpu(0) : gpu(7)); }),
              "NCCL needs a GPU for each rank, but ranks 1 and 2 share GPU 7; start fewer ranks, "
              "or let ranks communicate through the host");
    host.close();
  });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

// Fault 35.
TEST(NcclCommunicatorTest, RefusesDifferentVersionsOnAllRanksByTheNamesOfHosts) {
  NcclFunctions older = fake_nccl();
  older.get_version = [](int* version) {
    *version = 22703;
    return ncclSuccess;
  };
  run_threads(3, [&older](Communicator& host) {
    const bool is_older = host.rank() == 2;
    NcclDevice device{.gpu = gpu(host.rank())};
    device.host = is_older ? "gpu-07" : "gpu-06";
    device.library = is_older ? "/opt/libnccl.so.2" : "/usr/lib/libnccl.so.2";
    EXPECT_EQ(message_of<ConfigError>(
                  [&] { NcclCommunicator nccl(is_older ? older : fake_nccl(), host, device); }),
              "the ranks do not mean the same run; give all of them the same settings, environment "
              "and files:\nNCCL (install the same on all hosts, or name its folder in "
              "STRATA_CUDA_PATH): 2.28.9 of /usr/lib/libnccl.so.2 on rank 0 (gpu-06), 2.27.3 of "
              "/opt/libnccl.so.2 on rank 2 (gpu-07)");
    host.close();
  });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

TEST(NcclCommunicatorTest, ARankThatDoesNotComeEndsTheStartOfTheOthers) {
  run_threads(3, [](Communicator& host) {
    if (host.rank() == 2) {
      host.abort("no GPU");
      return;
    }
    EXPECT_EQ(message_of<PeerError>([&] { SimulatedNccl nccl(host, gpu(host.rank())); }),
              "rank 2: no GPU");
  });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

TEST(NcclCommunicatorTest, AnAbortEndsTheWaitsOfAllRanks) {
  run_threads(3, [](Communicator& host) {
    SimulatedNccl nccl(host, gpu(host.rank()));
    TestArena arena(nccl, 4096);
    if (host.rank() == 1) nccl.abort("disk full", ExitCode::io);
    std::byte* word = arena.take(8);
    for (int call = 0; call < 2; ++call)
      EXPECT_EQ(message_of<PeerError>([&] {
                  HostStream stream;
                  nccl.run(stream, integer_sum(1, 3), word, word, {});
                }),
                "rank 1: disk full");
    EXPECT_EQ(message_of<PeerError>([&] { nccl.check(); }), "rank 1: disk full");
  });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

// Fault 2.
TEST(NcclCommunicatorTest, ItsWaitsEndAtTheLaunchersWordToTheHost) {
  run_threads(2, [](Communicator& host) {
    SimulatedNccl nccl(host, gpu(host.rank()));
    TestWatch watch("host b is lost");
    host.set_watch(&watch);
    watch.order_stop();
    EXPECT_EQ(message_of<PeerError>([&] { nccl.check(); }), "mlaunch: host b is lost");
    nccl.abort("mlaunch: host b is lost", ExitCode::try_again);
  });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

TEST(NcclCommunicatorTest, AnErrorOfNcclNamesTheCollectiveAndReachesAllRanks) {
  run_threads(2, [](Communicator& host) {
    SimulatedNccl nccl(host, gpu(host.rank()));
    if (host.rank() == 1) {
      fake_nccl_failing_rank() = 1;
      EXPECT_EQ(message_of<PeerError>([&] { nccl.check(); }),
                "rank 1: a collective up to 'start' failed: remote process exited (details); "
                "NCCL_DEBUG=WARN tells more");
      fake_nccl_failing_rank() = -1;
      return;
    }
    std::string told = "no error";
    while (told == "no error") told = message_of<PeerError>([&] { nccl.check(); });
    EXPECT_EQ(told.rfind("rank 1: a collective up to 'start' failed", 0), 0U) << told;
  });
  EXPECT_EQ(fake_nccl_alive(), 0);
}

}  // namespace
}  // namespace strata::comm
