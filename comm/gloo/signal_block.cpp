#include "comm/gloo/signal_block.h"

#include <ctime>

#include "core/check.h"

namespace strata::comm {
namespace {

sigset_t pipe_signal() {
  sigset_t signals;
  STRATA_CHECK(::sigemptyset(&signals) == 0 && ::sigaddset(&signals, SIGPIPE) == 0);
  return signals;
}

void set_mask(int how, const sigset_t& mask, sigset_t* before) {
  const int error = ::pthread_sigmask(how, &mask, before);
  STRATA_CHECK(error == 0, "pthread_sigmask, error", error);
}

}  // namespace

PipeSignalBlock::PipeSignalBlock() { set_mask(SIG_BLOCK, pipe_signal(), &before_); }

PipeSignalBlock::~PipeSignalBlock() {
  if (::sigismember(&before_, SIGPIPE) == 1) return;
  const sigset_t signals = pipe_signal();
  const timespec now{};
  while (::sigtimedwait(&signals, nullptr, &now) == SIGPIPE) {
  }
  set_mask(SIG_SETMASK, before_, nullptr);
}

AllSignalsBlock::AllSignalsBlock() {
  sigset_t all;
  STRATA_CHECK(::sigfillset(&all) == 0);
  set_mask(SIG_BLOCK, all, &before_);
}

AllSignalsBlock::~AllSignalsBlock() { set_mask(SIG_SETMASK, before_, nullptr); }

}  // namespace strata::comm
