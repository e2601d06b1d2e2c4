// MPI calls, checked and waited for with sleep. Included by the module's sources only.
#pragma once

#include <mpi.h>

#include <atomic>
#include <mutex>
#include <string_view>
#include <vector>

namespace strata::comm {

/// Throws PeerError naming `call`, the collective (empty: none) and MPI's own text unless `result`
/// is MPI_SUCCESS.
void check_mpi(int result, const char* call, std::string_view collective = {});

/// Nonblocking operations of one collective after the other. MPI's own waiting burns a core per
/// rank, which starves the others where ranks outnumber cores: here one tests and sleeps. `mutex`
/// guards every call into MPI. Room for requests is kept from collective to collective.
class MpiRequests {
 public:
  MpiRequests(std::mutex& mutex, const std::atomic<bool>& aborted)
      : mutex_(mutex), aborted_(aborted) {}

  /// Those begun from here on belong to `collective`, a text that must live until they are
  /// finished.
  void belong_to(std::string_view collective) { collective_ = collective; }

  /// `call` fills one more request.
  template <typename Call>
  void begin(const char* name, Call&& call) {
    const std::lock_guard lock(mutex_);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(call(&request), name, collective_);
    requests_.push_back(request);
  }

  /// Returns when all are complete. Throws PeerError on failure or when `aborted` was set.
  void finish();

 private:
  [[nodiscard]] bool test();
  std::mutex& mutex_;
  const std::atomic<bool>& aborted_;
  std::string_view collective_;
  std::vector<MPI_Request> requests_;
};

}  // namespace strata::comm
