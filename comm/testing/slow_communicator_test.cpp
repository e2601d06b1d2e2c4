// The communicator with the delays of a network: it does what its backend does, and takes as long
// as the rates say.
#include "comm/testing/slow_communicator.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "comm/factory.h"
#include "comm/host_stream.h"
#include "comm/testing/conformance.h"
#include "comm/testing/test_arena.h"
#include "core/clock.h"

namespace strata::comm {
namespace {

void run_slow_ranks(int world, const SlowNetwork& network, const RankBody& body) {
  auto communicators = make_thread_communicators(world);
  LastArrivals arrivals;
  std::vector<std::thread> threads;
  for (auto& communicator : communicators)
    threads.emplace_back([&] {
      SlowCommunicator slow(*communicator, arrivals, network);
      try {
        body(slow);
        slow.close();
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << slow.rank() << ": " << error.what();
        slow.abort(error.what(), ExitCode::internal);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

std::vector<TestedBackend> slow_backends() {
  std::vector<TestedBackend> all;
  for (const int world : {2, 3})
    all.push_back({"slow", world,
                   [](int ranks, const RankBody& body) {
                     run_slow_ranks(ranks, {.bytes_per_second = 1e12, .latency_seconds = 1e-6},
                                    body);
                   },
                   true});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Slow, CommConformance, testing::ValuesIn(slow_backends()), backend_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommFailure);  // failures are those of its backend

TEST(SlowNetwork, TakesTheBytesOfTheRankThatSendsMostAndALatencyForEachHop) {
  const SlowNetwork network{.bytes_per_second = 1e6, .latency_seconds = 1e-3};
  const Collective gather{.kind = CollectiveKind::all_gather,
                          .input_type = DType::u8,
                          .partition = {{0, 1000, 1500, 1500}}};
  EXPECT_EQ(network.collective_ns(3, gather), 2'000'000 + 2'000'000);
}

TEST(SlowCommunicator, DelaysCountFromTheLastRankAndEndTogether) {
  constexpr SlowNetwork kNetwork{.bytes_per_second = 1e8, .latency_seconds = 0.02};
  constexpr std::int64_t kPiece = 1'000'000, kTakesNs = 30'000'000;
  std::vector<std::int64_t> came_ns(2), ended_ns(2);
  run_slow_ranks(2, kNetwork, [&](Communicator& communicator) {
    TestArena arena(communicator, 2 * kPiece + 4096);
    const Collective gather{.kind = CollectiveKind::all_gather,
                            .input_type = DType::u8,
                            .partition = {{0, kPiece, 2 * kPiece}}};
    std::byte* whole = arena.take(2 * kPiece);
    const auto rank = static_cast<std::size_t>(communicator.rank());
    HostStream stream;
    for (int round = 0; round < 2; ++round) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
      came_ns[rank] = monotonic_ns();
      communicator.run(stream, gather, whole + gather.partition.begin(communicator.rank()), whole,
                       {});
      ended_ns[rank] = monotonic_ns();
    }
  });
  for (const std::int64_t end : ended_ns) {
    EXPECT_GE(end, came_ns[1] + kTakesNs);
    EXPECT_LE(end, came_ns[1] + kTakesNs + 1'000'000'000) << "on any machine";
  }
}

}  // namespace
}  // namespace strata::comm
