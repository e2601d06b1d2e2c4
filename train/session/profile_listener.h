// Writes where a session's time goes, by operation and shape (--profile).
#pragma once

#include <cstdint>
#include <optional>

#include "machine/machine.h"
#include "runtime/execute/profile.h"
#include "train/config/options.h"
#include "train/run/run_listeners.h"

namespace strata::train {

/// A RunListener of every rank. Measures what a CPU can do before the engine takes the memory, in
/// what a target of memory leaves for arenas; when all is saved it prints a summary, and rank 0
/// writes the file with all ranks. Throws ConfigError if there are too few steps, and IoError.
/// Borrows the options, and the listeners that hear the text.
class ProfileListener {
 public:
  ProfileListener(const TrainOptions& options, const RunListeners& listeners);
  void operator()(const RunEvent& event);

 private:
  static constexpr std::int64_t kLeftOut = 2;  ///< first steps that allocate, load and record

  void begin(const Equipping& equipping);
  void measure(int local_ranks);
  void write(const Closing& closing) const;

  const TrainOptions& options_;
  const RunListeners& listeners_;
  machine::Machine machine_;
  std::optional<runtime::ProfileRecorder> recorder_;
};

}  // namespace strata::train
