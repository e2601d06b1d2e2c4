#include <chrono>
#include <thread>
#include <vector>

#include "comm/factory.h"
#include "comm/host_stream.h"
#include "comm/testing/conformance.h"
#include "comm/testing/test_arena.h"
#include "comm/testing/test_watch.h"
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

void run_threads(int world, const RankBody& body, bool closes) {
  auto communicators = make_thread_communicators(world);
  std::vector<std::thread> threads;
  for (auto& communicator : communicators)
    threads.emplace_back(run_rank, std::move(communicator), std::cref(body), closes);
  for (std::thread& thread : threads) thread.join();
}

std::vector<TestedBackend> backends(std::initializer_list<int> worlds, bool closes) {
  std::vector<TestedBackend> result;
  for (const int world : worlds)
    result.push_back(
        {"threads", world,
         [closes](int ranks, const RankBody& body) { run_threads(ranks, body, closes); }, true});
  return result;
}

INSTANTIATE_TEST_SUITE_P(Threads, CommConformance,
                         testing::ValuesIn(backends({1, 2, 3, 4, 5, 8}, true)), backend_name);
INSTANTIATE_TEST_SUITE_P(Threads, CommFailure, testing::ValuesIn(backends({2, 3, 8}, false)),
                         backend_name);

/// Gathers until a rank aborts, then destroys its arena at once. Nearly all bytes are rank 1's, so
/// that rank waits while the others read them.
void gather_until_abort(Communicator& communicator) {
  constexpr std::int64_t kPiece = 16 << 20;
  try {
    TestArena arena(communicator, kPiece + 4096);
    const Collective gather{.kind = CollectiveKind::all_gather,
                            .input_type = DType::u8,
                            .partition = {{0, 64, kPiece, kPiece + 64}}};
    std::byte* whole = arena.take(kPiece + 64);
    std::byte* mine = whole + gather.partition.begin(communicator.rank());
    HostStream stream;
    for (;;) communicator.run(stream, gather, mine, whole, {});
  } catch (const PeerError& error) {
    EXPECT_NE(std::string(error.what()).find("enough"), std::string::npos) << error.what();
  }
}

TEST(ThreadCommunicator, AFailingRanksArenaMayGoAtOnce) {
  for (int round = 0; round < 20; ++round) {
    auto communicators = make_thread_communicators(3);
    std::vector<std::thread> threads;
    for (auto& communicator : communicators)
      threads.emplace_back([&communicator] { gather_until_abort(*communicator); });
    // Aborts from another thread of rank 1, as a compute queue does. No rank may crash.
    std::this_thread::sleep_for(std::chrono::milliseconds(5 + round));
    communicators[1]->abort("enough");
    for (std::thread& thread : threads) thread.join();
  }
}

/// A rank of two that waits for the other, which never comes, until the launcher has it end.
std::string end_by_the_launcher(const std::function<void(Communicator&)>& wait) {
  auto communicators = make_thread_communicators(2);
  TestWatch watch("host b is lost");
  communicators[0]->set_watch(&watch);
  std::thread launcher([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    watch.order_stop();
  });
  std::string told = "nothing";
  const auto begin = std::chrono::steady_clock::now();
  try {
    wait(*communicators[0]);
  } catch (const PeerError& error) {
    told = error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  launcher.join();
  HostStream stream;  // the other one's next collective ends for the same reason
  try {
    communicators[1]->run(stream, {.kind = CollectiveKind::barrier}, nullptr, nullptr, {});
    ADD_FAILURE() << "the communicator is not poisoned";
  } catch (const PeerError& error) {
    EXPECT_EQ(error.what(), told);
  }
  return told;
}

// Fault 2.
TEST(ThreadCommunicator, EndsAtTheLaunchersWordInACollective) {
  EXPECT_EQ(end_by_the_launcher([](Communicator& communicator) {
              HostStream stream;
              communicator.run(stream, {.kind = CollectiveKind::barrier}, nullptr, nullptr, {});
            }),
            "mlaunch: host b is lost");
}

TEST(ThreadCommunicator, EndsAtTheLaunchersWordWhileADeviceIsWaitedFor) {
  EXPECT_EQ(end_by_the_launcher([](Communicator& communicator) {
              for (int i = 0; i < 100; ++i) {
                communicator.check();
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
              }
            }),
            "mlaunch: host b is lost");
}

}  // namespace
}  // namespace strata::comm
