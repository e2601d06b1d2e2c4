// The checkpoints of one run: which one it goes on from, when one is due, what becomes of old ones
// and of failures.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/file_system.h"
#include "core/rank_context.h"
#include "train/checkpoint/checkpoint_commit.h"
#include "train/checkpoint/output_lock.h"
#include "train/checkpoint/trainer_state.h"
#include "train/config/options.h"
#include "train/engine/engine.h"

namespace strata::train {

/// A checkpoint that a run goes on from.
struct ResumePoint {
  std::string directory;
  TrainerState state;
};

struct SavedCheckpoint {
  std::string directory;
  std::int64_t bytes = 0;
  double seconds = 0;  ///< for which training stood still
};

/// All calls are collective.
class RunCheckpoints {
 public:
  /// Makes the output folder, takes its lock and removes what a broken run left there. Throws
  /// HostError when another run has it or ranks do not share it, DataError when it has checkpoints
  /// and nothing is said about resuming.
  RunCheckpoints(const CheckpointOptions& options, const std::string& output,
                 const RankContext& context, comm::Communicator& communicator);

  /// Where to go on; nullopt: from the beginning. Throws DataError when there is nothing and
  /// something is required.
  std::optional<ResumePoint> find_resume_point();

  /// Fills the engine from the point's tensors and scalars; from the next older checkpoint when
  /// this one turns out to be damaged and the choice was ours. Returns what was loaded, and notes
  /// about conversions.
  ResumePoint load(Engine& engine, ResumePoint point, std::vector<std::string>& notes);

  /// Whether the run said "go on", not from where: what is done already needs no doing then.
  [[nodiscard]] bool goes_on_by_itself() const;

  /// Whether a checkpoint is due behind step `step`, which is not the last; rank 0's clock counts.
  bool is_due(std::int64_t step);

  /// Saves, commits, points "latest" there, and removes what need not be kept. nullopt: it failed
  /// and the run goes on, which was said. Throws what failed where it must not.
  std::optional<SavedCheckpoint> save(Engine& engine, const TrainerState& state, Facts facts,
                                      std::vector<WholeFile> whole_files, bool must);

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] bool first() const { return context_.rank == 0; }
  /// What rank 0 says.
  std::string from_first(const std::string& text);
  /// Throws on all ranks when `body` throws on one: the first rank's class and message.
  template <typename Body>
  void together(const Body& body);
  void probe_folder();
  std::string choose();
  [[nodiscard]] ResumePoint open(const std::string& directory);
  /// What follows a commit; a failure is said and costs nothing but space.
  void tidy_up(std::int64_t step);
  void remove_old();

  CheckpointOptions options_;
  std::string output_;
  const RankContext& context_;
  std::string run_tag_;  ///< the run's id as names of files have it
  comm::Communicator& communicator_;
  PosixFileSystem files_;
  std::unique_ptr<OutputLock> lock_;
  std::set<std::string> damaged_;  ///< directories that did not load
  std::vector<std::string> reasons_;
  int attempts_ = 0;
  Clock::time_point last_save_ = Clock::now();
};

}  // namespace strata::train
