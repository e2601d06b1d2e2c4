// Keeps signals from a thread while it calls into Gloo.
#pragma once

#include <csignal>

namespace strata::comm {

/// Blocks SIGPIPE on the calling thread while it lives: Gloo writes to sockets that may be broken,
/// and the error that it then gets is enough.
class PipeSignalBlock {
 public:
  PipeSignalBlock();
  ~PipeSignalBlock();
  PipeSignalBlock(const PipeSignalBlock&) = delete;
  PipeSignalBlock& operator=(const PipeSignalBlock&) = delete;

 private:
  sigset_t before_;
};

/// Blocks all signals while it lives, so that threads that are made meanwhile never handle any.
class AllSignalsBlock {
 public:
  AllSignalsBlock();
  ~AllSignalsBlock();
  AllSignalsBlock(const AllSignalsBlock&) = delete;
  AllSignalsBlock& operator=(const AllSignalsBlock&) = delete;

 private:
  sigset_t before_;
};

}  // namespace strata::comm
