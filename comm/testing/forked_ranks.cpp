#include "comm/testing/forked_ranks.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "core/system_call.h"

namespace strata::comm {
namespace {

constexpr unsigned kLimitSeconds = 120;

[[noreturn]] void run_child(int rank, const std::function<int(int rank)>& body) {
  ::alarm(kLimitSeconds);
  int code = 70;
  try {
    code = body(rank);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
  }
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace

std::vector<int> run_forked(int world, const std::function<int(int rank)>& body) {
  std::fflush(nullptr);  // otherwise every child would print the buffers again
  std::vector<pid_t> processes;
  for (int rank = 0; rank < world; ++rank) {
    const pid_t process = checked(::fork(), "fork");
    if (process == 0) run_child(rank, body);
    processes.push_back(process);
  }
  std::vector<int> statuses(processes.size());
  for (std::size_t rank = 0; rank < processes.size(); ++rank)
    checked(::waitpid(processes[rank], &statuses[rank], 0), "waitpid");
  return statuses;
}

}  // namespace strata::comm
