#include "tests/training/rank_threads.h"

#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "comm/factory.h"

namespace strata::tests {

void on_rank_threads(int world, const std::function<void(comm::Communicator&)>& body) {
  auto communicators = comm::make_thread_communicators(world);
  std::vector<std::exception_ptr> errors(communicators.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < communicators.size(); ++r)
    threads.emplace_back([&, r] {
      try {
        body(*communicators[r]);
      } catch (...) {
        errors[r] = std::current_exception();
        communicators[r]->abort("rank " + std::to_string(r) + " failed");
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace strata::tests
