// SIGTERM and SIGUSR1 as a question asked between steps: no handler, no global state.
#pragma once

#include <csignal>

#include "core/unique_fd.h"

namespace strata::train {

/// Blocks both signals in the calling thread and in threads it starts afterwards, and collects them
/// in a signalfd. Once a request was seen they have their default effect again in the calling
/// thread: who asks a second time means now. SIGINT is left alone.
class StopRequest {
 public:
  /// Throws HostError.
  StopRequest();
  /// Restores the thread's signal mask.
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// True from the first signal on. Does not wait.
  bool requested();

 private:
  sigset_t before_{};
  UniqueFd fd_;
  bool requested_ = false;
};

}  // namespace strata::train
