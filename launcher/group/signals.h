// Signals to mlaunch, as data to read.
#pragma once

#include <signal.h>

#include "core/unique_fd.h"

namespace strata::launcher {

/// Blocks the signals that mlaunch handles, in the whole process, while this object lives. Signals
/// that were ignored at the start (nohup, background jobs of scripts) stay ignored.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Returns the next signal that arrived; 0: none.
  int next();

 private:
  sigset_t mask_before_{};
  UniqueFd fd_;
};

}  // namespace strata::launcher
