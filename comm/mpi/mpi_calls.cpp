#include "comm/mpi/mpi_calls.h"

#include <fmt/core.h>
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "core/error.h"

namespace strata::comm {
namespace {

// Tests before the first sleep: a peer is often about to answer.
constexpr int kEagerTests = 50;
constexpr std::chrono::microseconds kShortestSleep{20};
constexpr std::chrono::microseconds kLongestSleep{1000};

}  // namespace

void check_mpi(int result, const char* call, std::string_view collective) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw PeerError(fmt::format("{}{} failed: {}", call,
                              collective.empty() ? "" : fmt::format(" in '{}'", collective), text));
}

bool MpiRequests::test() {
  const std::lock_guard lock(mutex_);
  if (aborted_) throw PeerError("aborted during '" + std::string(collective_) + "'");
  int done = 0;
  check_mpi(
      MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
      "MPI_Testall", collective_);
  return done != 0;
}

void MpiRequests::finish(const Watch* watch) {
  auto sleep = kShortestSleep;
  for (int tests = 0; !test(); ++tests) {
    if (tests < kEagerTests) continue;
    require_not_stopped(watch);
    std::this_thread::sleep_for(sleep);
    sleep = std::min(sleep * 3 / 2, kLongestSleep);
  }
  requests_.clear();
}

}  // namespace strata::comm
