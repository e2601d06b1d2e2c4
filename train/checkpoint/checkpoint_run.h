// Which run, and which of its attempts, wrote a checkpoint.
#pragma once

#include <optional>
#include <string>

#include "core/file_system.h"
#include "train/checkpoint/manifest.h"

namespace strata::train {

/// Keys of the manifest's facts. Older checkpoints do not have the second.
inline constexpr const char* kRunIdFact = "run_id";
inline constexpr const char* kAttemptFact = "attempt";

struct CheckpointRun {
  std::string run_id;
  int attempt = 0;  ///< start of the run that wrote it, from 0
};

/// Reads the facts; nullopt if they do not name a run.
std::optional<CheckpointRun> run_of(const Manifest& manifest);

/// Reads only the checkpoint's manifest; nullopt if that is missing or damaged, or names no run.
/// Throws IoError if it cannot be read.
std::optional<CheckpointRun> run_of_checkpoint(FileSystem& files, const std::string& directory);

}  // namespace strata::train
