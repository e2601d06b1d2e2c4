// Which checkpoint a run goes on from, and what becomes of the engine by it.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "train/checkpoint/trainer_state.h"
#include "train/config/options.h"
#include "train/engine/engine.h"
#include "train/run/output_folder.h"

namespace strata::train {

/// A checkpoint that a run goes on from.
struct ResumePoint {
  std::string directory;
  TrainerState state;
};

/// All calls are collective. Borrows the folder.
class ResumeSource {
 public:
  ResumeSource(const CheckpointOptions& options, OutputFolder& folder)
      : options_(options), folder_(folder) {}

  /// Where to go on; nullopt: from the beginning. Throws DataError when there is nothing and
  /// something is required.
  std::optional<ResumePoint> find();

  /// Fills the engine from the point's tensors and scalars; from the next older checkpoint when
  /// this one turns out to be damaged and the choice was ours. Returns what was loaded, and notes
  /// about conversions.
  ResumePoint load(Engine& engine, ResumePoint point, std::vector<std::string>& notes);

  /// Whether the run said "go on", not from where: what is done already needs no doing then.
  [[nodiscard]] bool goes_on_by_itself() const;

 private:
  std::string choose();
  [[nodiscard]] ResumePoint open(const std::string& directory);

  CheckpointOptions options_;
  OutputFolder& folder_;
  std::set<std::string> damaged_;  ///< directories that did not load
  std::vector<std::string> reasons_;
};

}  // namespace strata::train
