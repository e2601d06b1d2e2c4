// Writes when each instruction of a session ran, on all ranks (--trace).
#pragma once

#include <optional>
#include <string>

#include "runtime/execute/trace.h"
#include "train/run/run_listeners.h"

namespace strata::train {

/// A RunListener of every rank: ranks agree on a clock before the engine is made, and rank 0 writes
/// the file when all is saved. Throws Error. Borrows the listeners that hear the note.
class TraceListener {
 public:
  TraceListener(std::string path, const runtime::TraceSteps& steps, const RunListeners& listeners)
      : path_(std::move(path)), steps_(steps), listeners_(listeners) {}
  void operator()(const RunEvent& event);

 private:
  void begin(const Equipping& equipping);
  void write(comm::Communicator& ranks) const;
  std::string path_;
  runtime::TraceSteps steps_;
  const RunListeners& listeners_;
  std::optional<runtime::TraceRecorder> recorder_;
};

}  // namespace strata::train
