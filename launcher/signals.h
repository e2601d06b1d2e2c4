// Signals to mlaunch as something to read.
#pragma once

#include <signal.h>

#include "core/unique_fd.h"

namespace strata::launcher {

/// Blocks the signals that mlaunch handles, for the whole process, as long as it lives. What was
/// ignored at the start (nohup, background jobs of scripts) stays ignored.
class SignalQueue {
 public:
  SignalQueue();
  ~SignalQueue();
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// The next signal that came, 0: none.
  int next();

 private:
  sigset_t mask_before_{};
  UniqueFd fd_;
};

}  // namespace strata::launcher
