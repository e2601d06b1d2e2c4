// MPI calls, checked and waited for with sleep. Included by the module's sources only.
#pragma once

#include <mpi.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

namespace strata::comm {

/// Throws PeerError naming `call` and MPI's own text unless `result` is MPI_SUCCESS.
void check_mpi(int result, const std::string& call);

/// Nonblocking operations under way. MPI's own waiting burns a core per rank, which starves the
/// others where ranks outnumber cores: here one tests and sleeps. `mutex` guards every call into
/// MPI.
class MpiRequests {
 public:
  MpiRequests(std::mutex& mutex, const std::atomic<bool>& aborted, std::string what)
      : mutex_(mutex), aborted_(aborted), what_(std::move(what)) {}

  /// Room for one more request, to be filled by the call that `begin` checks.
  template <typename Call>
  void begin(const char* name, Call&& call) {
    const std::lock_guard lock(mutex_);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(call(&request), name + (" in '" + what_ + "'"));
    requests_.push_back(request);
  }

  /// Returns when all are complete. Throws PeerError on failure or when `aborted` was set.
  void finish();

 private:
  [[nodiscard]] bool test();
  std::mutex& mutex_;
  const std::atomic<bool>& aborted_;
  std::string what_;
  std::vector<MPI_Request> requests_;
};

}  // namespace strata::comm
