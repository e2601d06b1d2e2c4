// --profile: where a run's time goes, by operation and shape.
#pragma once

#include <cstdint>
#include <string>

#include "comm/communicator.h"
#include "machine/machine.h"
#include "runtime/execute/profile.h"
#include "train/config/options.h"

namespace strata::train {

class RunProfile {
 public:
  /// Measures what a CPU can do at most: before the engine takes the memory. `first_step`: steps
  /// done before this process. Throws ConfigError when there are too few steps.
  RunProfile(const TrainOptions& options, machine::Machine machine, std::int64_t first_step);

  /// For ExecutorParts::observers; lives as long as the engine.
  [[nodiscard]] runtime::Observer& observer() { return recorder_; }

  /// Collective, between steps while the engine lives: rank 0 writes the file. Returns what it
  /// shows people. Throws IoError.
  [[nodiscard]] std::string write(comm::Communicator& host, const std::string& device) const;

 private:
  static constexpr std::int64_t kLeftOut = 2;  ///< steps: memory, libraries, recordings

  std::string file_;
  machine::Machine machine_;
  runtime::ProfileRecorder recorder_;
};

}  // namespace strata::train
