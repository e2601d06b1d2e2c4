#include "runtime/testing/thread_ranks.h"

#include <exception>
#include <thread>

#include "comm/factory.h"

namespace strata::runtime {

std::vector<std::string> run_ranks(int world,
                                   const std::function<void(comm::Communicator&)>& body) {
  auto communicators = comm::make_thread_communicators(world);
  std::vector<std::string> errors(communicators.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < communicators.size(); ++r)
    threads.emplace_back([&, r] {
      try {
        body(*communicators[r]);
      } catch (const std::exception& error) {
        errors[r] = error.what();
        communicators[r]->abort("rank " + std::to_string(r) + " failed: " + error.what());
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace strata::runtime
