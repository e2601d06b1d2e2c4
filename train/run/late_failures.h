// Failures in what a run does besides training: they are printed at once and cost no step and no
// checkpoint; the exit code reports them once everything is saved.
#pragma once

#include <string>

#include "core/error.h"
#include "train/run/run_listeners.h"

namespace strata::train {

/// Collects these failures on one rank.
class LateFailures {
 public:
  explicit LateFailures(const RunListeners& listeners) : listeners_(listeners) {}

  /// Keeps a failure and warns of it.
  void add(ExitCode code, const std::string& message);

  /// Keeps what `body` throws, except PeerError: without the other ranks no run goes on.
  template <typename Body>
  void guard(const Body& body) {
    try {
      body();
    } catch (const PeerError&) {
      throw;
    } catch (const Error& error) {
      add(error.exit_code(), error.what());
    }
  }

  /// Throws at the end, once everything is saved if the run saves, one error with the first
  /// failure's exit code and message.
  void throw_if_any(bool has_saved) const;

 private:
  const RunListeners& listeners_;
  ExitCode code_ = ExitCode::done;
  std::string first_;
  int count_ = 0;
};

}  // namespace strata::train
