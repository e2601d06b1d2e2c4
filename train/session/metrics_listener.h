// The metrics file of a session.
#pragma once

#include <optional>
#include <string>

#include "train/run/run_listeners.h"
#include "train/session/metrics_log.h"

namespace strata::train {

/// A RunListener: opens the file when training begins (an earlier run's goes aside, which is
/// noted) and writes a line of each step, evaluation and checkpoint. Throws the IoError of opening,
/// and once that of writing.
class MetricsListener {
 public:
  /// Borrows who hears the note.
  MetricsListener(std::string path, const RunListeners& listeners)
      : path_(std::move(path)), listeners_(listeners) {}
  void operator()(const RunEvent& event);

 private:
  void open(const Began& began);
  std::string path_;
  const RunListeners& listeners_;
  std::optional<MetricsLog> log_;
  std::optional<IoError> failure_;  ///< not yet thrown
};

}  // namespace strata::train
