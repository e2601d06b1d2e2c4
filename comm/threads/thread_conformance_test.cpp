#include <thread>
#include <vector>

#include "comm/factory.h"
#include "comm/testing/conformance.h"

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

}  // namespace
}  // namespace strata::comm
