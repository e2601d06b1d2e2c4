// When a run saves, and what becomes of old checkpoints and of failures.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint_commit.h"
#include "train/checkpoint/trainer_state.h"
#include "train/config/options.h"
#include "train/engine/engine.h"
#include "train/run/output_folder.h"

namespace strata::train {

struct SavedCheckpoint {
  std::string directory;
  std::int64_t bytes = 0;
  double seconds = 0;  ///< for which training stood still
};

/// All calls are collective. Borrows the folder.
class CheckpointSaver {
 public:
  CheckpointSaver(const CheckpointOptions& options, OutputFolder& folder)
      : options_(options), folder_(folder) {}

  /// Whether a checkpoint is due behind step `step`, which is not the last; rank 0's clock counts.
  bool is_due(std::int64_t step);

  /// Saves, commits, points "latest" there, and removes what need not be kept. nullopt: it failed
  /// and the run goes on, which was said. Throws what failed where it must not.
  std::optional<SavedCheckpoint> save(Engine& engine, const TrainerState& state, Facts facts,
                                      std::vector<WholeFile> whole_files, bool must);

 private:
  using Clock = std::chrono::steady_clock;

  /// What follows a commit; a failure is said and costs nothing but space.
  void tidy_up(std::int64_t step);
  void remove_old();

  CheckpointOptions options_;
  OutputFolder& folder_;
  int attempts_ = 0;
  Clock::time_point last_save_ = Clock::now();
};

}  // namespace strata::train
