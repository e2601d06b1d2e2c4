// --profile: where a run's time goes, by operation and shape.
#pragma once

#include <cstdint>
#include <string>

#include "comm/communicator.h"
#include "kernels/device.h"
#include "runtime/machine_rates.h"
#include "runtime/profile.h"
#include "train/config/options.h"
#include "train/run/peak_rates.h"

namespace strata::train {

class RunProfile {
 public:
  /// Measures what a CPU can do at most: before the engine takes the memory. `first_step`: steps
  /// done before this process. Throws ConfigError when there are too few steps.
  RunProfile(const TrainOptions& options, const kernels::Device* device, int threads,
             const runtime::MachineRates& moving, std::int64_t first_step);

  /// For ExecutorParts::observers; lives as long as the engine.
  [[nodiscard]] runtime::Observer& observer() { return recorder_; }

  /// Collective, between steps while the engine lives: rank 0 writes the file. Returns what it
  /// shows people. Throws IoError.
  [[nodiscard]] std::string write(comm::Communicator& host, const std::string& device) const;

 private:
  static constexpr std::int64_t kLeftOut = 2;  ///< steps: memory, libraries, recordings

  std::string file_;
  bool on_device_;
  runtime::ProfileRecorder recorder_;
  PeakRates rates_;
};

}  // namespace strata::train
