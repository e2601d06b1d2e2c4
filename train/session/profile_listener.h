// --profile: where a session's time goes, by operation and shape.
#pragma once

#include <cstdint>
#include <optional>

#include "machine/machine.h"
#include "runtime/execute/profile.h"
#include "train/config/options.h"
#include "train/run/run_listeners.h"

namespace strata::train {

/// A RunListener of every rank: measures what a CPU can do at most before the engine takes the
/// memory, and when all is saved prints a summary, of which rank 0 writes the whole file. Throws
/// ConfigError when there are too few steps, IoError. Borrows who hears the text.
class ProfileListener {
 public:
  ProfileListener(const TrainOptions& options, const RunListeners& listeners);
  void operator()(const RunEvent& event);

 private:
  static constexpr std::int64_t kLeftOut = 2;  ///< steps: memory, libraries, recordings

  void begin(const Equipping& equipping);
  void write(const Ending& ending) const;

  std::string file_;
  bool compares_;  ///< --check-device
  DType dtype_;
  const RunListeners& listeners_;
  machine::Machine machine_;
  std::optional<runtime::ProfileRecorder> recorder_;
};

}  // namespace strata::train
