// The metrics file of a session.
#pragma once

#include <optional>
#include <string>

#include "train/run/session_listeners.h"
#include "train/session/metrics_log.h"

namespace strata::train {

/// A SessionListener: opens the file when training begins (an earlier run's goes aside, which is
/// noted) and writes a line of each step, evaluation and checkpoint. Throws the IoError of opening,
/// and once that of writing.
class MetricsListener {
 public:
  /// Borrows who hears the note.
  MetricsListener(std::string path, const SessionListeners& listeners)
      : path_(std::move(path)), listeners_(listeners) {}
  void operator()(const SessionEvent& event);

 private:
  void open(const Began& began);
  std::string path_;
  const SessionListeners& listeners_;
  std::optional<MetricsLog> log_;
  std::optional<IoError> failure_;  ///< not yet thrown
};

}  // namespace strata::train
