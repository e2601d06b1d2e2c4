// All state of an engine into a checkpoint, written by all ranks at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/file_system.h"
#include "train/checkpoint/checkpoint_commit.h"
#include "train/engine/engine.h"

namespace strata::train {

struct SaveRequest {
  std::string output;  ///< prepared folder (prepare_output_folder), the same files for all ranks
  std::int64_t step = 0;
  SaveAttempt attempt;
  Facts facts;                         ///< of the manifest; rank 0's count
  std::vector<WholeFile> whole_files;  ///< config.json, trainer_state.json, ...; rank 0's count
};

struct SaveResult {
  std::int64_t bytes = 0;     ///< of the whole checkpoint, small files left out
  std::int64_t my_bytes = 0;  ///< written by this rank
};

/// Collective, between steps, drained. When it returns the checkpoint survives a crash of the
/// machine; when any rank fails, all throw IoError's kind of Error with every failing rank's
/// message, the folder's other checkpoints are untouched, and what was written is removed.
SaveResult save_checkpoint(Engine& engine, FileSystem& files, const SaveRequest& request);

}  // namespace strata::train
