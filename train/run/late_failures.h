// What a run could not do beside training: said at once, it costs no step and no checkpoint; the
// exit code tells of it once everything is saved.
#pragma once

#include <string>

#include "core/error.h"
#include "train/run/run_listeners.h"

namespace strata::train {

/// Failures of one rank that cost no step.
class LateFailures {
 public:
  explicit LateFailures(const RunListeners& listeners) : listeners_(listeners) {}

  /// Says it on the screen.
  void add(ExitCode code, const std::string& message);

  /// Keeps what `body` throws; but PeerError goes through: without the others no run goes on.
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

  /// At the end: one error with the first one's exit code and message.
  void throw_if_any() const;

 private:
  const RunListeners& listeners_;
  ExitCode code_ = ExitCode::done;
  std::string first_;
  int count_ = 0;
};

}  // namespace strata::train
