// Checked MPI calls, and waiting that sleeps. Only sources of the module include this.
#pragma once

#include <mpi.h>

#include <atomic>
#include <mutex>
#include <string_view>
#include <vector>

#include "comm/watch.h"

namespace strata::comm {

/// Throws PeerError unless `result` is MPI_SUCCESS; it names `call`, the collective ("" for none)
/// and MPI's own text.
void check_mpi(int result, const char* call, std::string_view collective = {});

/// Nonblocking operations of one collective at a time. MPI's own waiting keeps a core busy per
/// rank, which starves other ranks if there are more ranks than cores; this class tests and sleeps
/// instead. `mutex` guards every call into MPI. The memory of requests is reused.
class MpiRequests {
 public:
  MpiRequests(std::mutex& mutex, const std::atomic<bool>& aborted)
      : mutex_(mutex), aborted_(aborted) {}

  /// Names the collective of the requests that follow; the text must live until they are finished.
  void belong_to(std::string_view collective) { collective_ = collective; }

  /// Begins one more request, which `call` fills.
  template <typename Call>
  void begin(const char* name, Call&& call) {
    const std::lock_guard lock(mutex_);
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(call(&request), name, collective_);
    requests_.push_back(request);
  }

  /// Returns when all requests are complete. Throws PeerError on failure, when `aborted` is set, or
  /// when `watch` says that this rank must end.
  void finish(const Watch* watch);

 private:
  [[nodiscard]] bool test();
  std::mutex& mutex_;
  const std::atomic<bool>& aborted_;
  std::string_view collective_;
  std::vector<MPI_Request> requests_;
};

}  // namespace strata::comm
