#include "tests/training/rank_threads.h"

#include <algorithm>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/factory.h"
#include "core/error.h"

namespace strata::tests {
namespace {

/// The error that a rank ended with; `cause` if no other rank's failure led to it.
struct Ended {
  std::exception_ptr error;
  bool cause = false;
};

Ended run_rank(std::unique_ptr<comm::Communicator> communicator,
               const std::function<void(comm::Communicator&)>& body) {
  try {
    body(*communicator);
    return {};
  } catch (const Error& error) {
    communicator->abort(error.what(), error.exit_code());
    return {std::current_exception(), error.exit_code() != ExitCode::try_again};
  } catch (const std::exception& error) {
    communicator->abort(error.what(), ExitCode::internal);
    return {std::current_exception(), true};
  }
}

void run_all(std::vector<std::unique_ptr<comm::Communicator>> communicators,
             const std::function<void(comm::Communicator&)>& body) {
  std::vector<Ended> ended(communicators.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < communicators.size(); ++r)
    // Each rank owns its communicator, so that others that still wait for it learn that it left.
    threads.emplace_back([&, r] { ended[r] = run_rank(std::move(communicators[r]), body); });
  for (std::thread& thread : threads) thread.join();
  std::ranges::stable_partition(ended, &Ended::cause);
  for (const Ended& rank : ended)
    if (rank.error) std::rethrow_exception(rank.error);
}

}  // namespace

void on_rank_threads(int world, const std::function<void(comm::Communicator&)>& body) {
  run_all(comm::make_thread_communicators(world), body);
}

void on_rank_threads(const comm::HostLayout& layout,
                     const std::function<void(comm::Communicator&)>& body) {
  run_all(comm::make_thread_communicators(layout), body);
}

}  // namespace strata::tests
