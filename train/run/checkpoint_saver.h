// Decides when a run saves, carries on the save under way, and handles failures and old
// checkpoints.
//
// With snapshots a save takes several steps. begin() comes after step t. The Program of step t + 1
// keeps a copy of the state, or hands it over in windows while it is written; at the border after
// that step go_on() writes the rest. Ranks that are not done say so in each step's agreed word, and
// at the border after the first step in which none did go_on() begins the next stage. So all ranks
// act at the same border, and none waits for a disk.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint_commit.h"
#include "train/checkpoint/trainer_state.h"
#include "train/config/options.h"
#include "train/engine/engine.h"
#include "train/engine/save_checkpoint.h"
#include "train/run/failed_save.h"
#include "train/run/lost_steps.h"
#include "train/run/output_folder.h"
#include "train/run/run_listeners.h"
#include "train/run/save_retry.h"
#include "train/run/stop_request.h"

namespace strata::train {

/// The states that may be saved: any, or only those without NaN and infinity.
enum class SaveOf : std::uint8_t { any_state, finite_state };

/// The contents of a checkpoint besides tensors, made when the save begins.
struct SaveContents {
  TrainerState state;
  Facts facts;
  std::vector<WholeFile> whole_files;
};

/// Saves a run's checkpoints. Collective calls are made by all ranks at the same border. Borrows
/// the folder and the listeners, `failed`, which knows why the newest attempt failed, `lost`, which
/// knows what is saved, and `stop`, which hears signals; null: nothing does.
class CheckpointSaver {
 public:
  CheckpointSaver(const CheckpointOptions& options, OutputFolder& folder,
                  const RunListeners& listeners, FailedSave& failed, LostSteps& lost,
                  const StopRequest* stop = nullptr)
      : options_(options),
        folder_(folder),
        listeners_(listeners),
        failed_(failed),
        lost_(lost),
        stop_(stop) {}

  /// Raises this rank's flags in the agreed word of step `step` (counted from 0), before it starts.
  void raise_flags(Engine& engine, std::int64_t step);
  /// Takes in the flags of a step, which are the same on all ranks.
  void hear(const kernels::StepMetrics& metrics);
  /// Says whether the next step must take the snapshot.
  [[nodiscard]] Snapshot wants_snapshot() const;

  /// True if a save must begin after step `step`, which is not the last. If another is under way,
  /// notes that this save waits, and returns true when that one has ended.
  bool is_due(std::int64_t step);
  /// Collective, settled: begins a save from a snapshot that the next step takes. If it fails and
  /// the run goes on, warns and begins nothing; otherwise throws the error.
  void begin(Engine& engine, SaveContents contents);
  /// True if go_on() has something to do at the border after the last started step.
  [[nodiscard]] bool is_ready() const;
  /// Collective, settled: goes on with the save; returns what was committed if that was the last
  /// stage. Errors as in begin().
  std::optional<Saved> go_on();
  /// Collective, drained, after the last step was started: finishes the save under way at once.
  std::optional<Saved> complete();
  /// Collective, drained: does a whole save while training stands still. `must`: a failure ends the
  /// run, but unless --on-save-error is stop only after attempts for --save-retry seconds. Returns
  /// nullopt if it failed or the state is not `of` the kind to be saved.
  std::optional<Saved> save(Engine& engine, SaveContents contents, bool must,
                            SaveOf of = SaveOf::any_state);

  /// The step of the last checkpoint that this process committed.
  [[nodiscard]] std::optional<std::int64_t> last_step() const { return last_step_; }
  /// "loss of step 7" if that step is the last one heard of and its loss was not finite (then the
  /// state computes nothing finite, whatever its values); else "".
  [[nodiscard]] const std::string& bad_loss() const { return bad_loss_; }
  /// Seconds since the last commit of this process, or since its start.
  [[nodiscard]] double age_seconds() const;
  [[nodiscard]] bool saves() const { return !folder_.path().empty(); }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stage : std::uint8_t { none, begun, under_way };
  /// The consequence of a failure: what --on-save-error says while training goes on, or before the
  /// last save; the end of the run; or another attempt.
  enum class Failing : std::uint8_t { as_asked, before_last, ends_run, tries_again };

  [[nodiscard]] SaveRequest request(SaveContents contents, SaveOf of);
  /// Makes the folder again if needed, and begins a save. Collective; throws what fails.
  void open(Engine& engine, SaveContents contents, SaveOf of, OutputFolder::Place place);
  /// `source`: where a save that has only begun gets the state.
  std::optional<Saved> go_on(SaveSource source, Failing failing);
  /// Collective: runs `body` until it succeeds, for at most --save-retry seconds; else false.
  bool keep_trying(std::int64_t step, const std::function<void()>& body);
  /// Runs `body`, which throws on all ranks or none. False: it failed and the run goes on.
  bool attempt(std::int64_t step, Failing failing, const std::function<void()>& body);
  std::optional<Saved> finish();
  /// Called on rank 0 before a commit. Throws PeerError if others may write the checkpoints by now.
  void require_lease(std::int64_t step) const;
  /// Called on rank 0 after a commit, which it tells the launcher; a failure only leaves old
  /// checkpoints on the disk.
  void tidy_up(std::int64_t step, bool is_finite);
  /// Removes another run's checkpoints for --overwrite-output-dir.
  void remove_replaced(std::int64_t step);

  CheckpointOptions options_;
  OutputFolder& folder_;
  const RunListeners& listeners_;
  FailedSave& failed_;
  LostSteps& lost_;
  const StopRequest* stop_;
  std::optional<SaveRetry> retry_;  ///< of the last save
  int attempts_ = 0;
  Clock::time_point last_commit_ = Clock::now();  ///< or start
  Clock::time_point last_end_ = last_commit_;     ///< of a save that was committed or failed
  std::optional<std::int64_t> last_step_;
  std::int64_t heard_step_ = 0;  ///< the last step whose metrics came, counted from 1
  std::string bad_loss_;
  /// bad_loss_ of the last step that computed its loss from the state being saved.
  std::string saved_bad_loss_;
  bool next_is_of_saved_ = false;  ///< the next step heard of computes its loss from it
  std::unique_ptr<CheckpointSave> save_;
  Stage stage_ = Stage::none;
  std::int64_t last_started_ = -1;  ///< counted from 0
  std::int64_t counts_from_ = 0;    ///< the first step whose flags concern the current stage
  bool all_done_ = false;           ///< no rank is still busy with the current stage
  bool said_due_ = false;           ///< rank 0 raised save_due by the clock
  bool due_by_clock_ = false;       ///< save_due was heard
  bool postponed_ = false;
  Clock::time_point begin_;
  double blocked_seconds_ = 0;
  std::vector<std::string> removed_;   ///< paths, printed when the save has ended
  std::vector<std::string> warnings_;  ///< printed when the save has ended
};

}  // namespace strata::train
