// The files for people's tools that a run writes, and their folders (docs/formats/logs.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/config/options.h"

namespace strata::train {

enum class LogFormat : std::uint8_t { event_file, csv };

/// Whose tags. trainer: of transformers, by steps. deepspeed: DeepSpeed's, by samples.
enum class LogNames : std::uint8_t { trainer, deepspeed };

struct LogSink {
  LogFormat format = LogFormat::event_file;
  LogNames names = LogNames::trainer;
  std::string folder;
  bool makes_own_folder = false;  ///< in `folder`, one per run
  std::string said_by;            ///< the flag or key that chose the folder
};

/// Lists those that options ask for.
std::vector<LogSink> log_sinks(const TrainOptions& options);

}  // namespace strata::train
