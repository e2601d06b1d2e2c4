// When a run saves, how far the save under way is, and what becomes of old checkpoints and of
// failures.
//
// With snapshots a save goes over several steps: begin() after step t; the Program of step t + 1
// keeps a copy of the state, or hands it over in windows while it is written; go_on() at the border
// after it writes what is left; ranks that are not
// done say so in each step's agreed word, and at the border after the first step in which nobody
// did go_on() takes the next stage. So all ranks act at the same border, and nobody waits for a
// disk.
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
#include "train/run/output_folder.h"
#include "train/run/run_listeners.h"

namespace strata::train {

/// Whether a state with NaN or infinity is worth a checkpoint.
enum class SaveOf : std::uint8_t { any_state, finite_state };

/// What goes into a checkpoint besides tensors, made when it begins.
struct SaveContents {
  TrainerState state;
  Facts facts;
  std::vector<WholeFile> whole_files;
};

/// Collective calls are made by all ranks at the same border. Borrows the folder and
/// the listeners.
class CheckpointSaver {
 public:
  CheckpointSaver(const CheckpointOptions& options, OutputFolder& folder,
                  const RunListeners& listeners)
      : options_(options), folder_(folder), listeners_(listeners) {}

  /// Before step `step` is started (counted from 0): what this rank says in its agreed word.
  void raise_flags(Engine& engine, std::int64_t step);
  /// The flags of a step, the same on all ranks.
  void hear(const kernels::StepMetrics& metrics);
  /// Whether the next step is to take the snapshot.
  [[nodiscard]] Snapshot wants_snapshot() const;

  /// Whether a save is to begin after step `step`, which is not the last. While another one is
  /// under way it is postponed, which is said, and begins when that has ended.
  bool is_due(std::int64_t step);
  /// Collective, settled: a save from a snapshot begins; the next step takes it. Where it fails and
  /// the run goes on, that is said and nothing begins. Throws what failed where it must not.
  void begin(Engine& engine, SaveContents contents);
  /// Whether go_on() has something to do at this border, after the step that was started last.
  [[nodiscard]] bool is_ready() const;
  /// Collective, settled. What was committed, if that was the end. Fails as begin().
  std::optional<Saved> go_on();
  /// Collective, drained, when no further step is started: the rest of the save under way at once.
  std::optional<Saved> complete();
  /// Collective, drained: a whole save while training stands still. `must`: a failure ends the run,
  /// where --on-save-error is not stop after attempts for --save-retry seconds.
  /// None: it failed, or the state is not `of` the kind to be saved.
  std::optional<Saved> save(Engine& engine, SaveContents contents, bool must,
                            SaveOf of = SaveOf::any_state);

  /// The step of the last commit of this process.
  [[nodiscard]] std::optional<std::int64_t> last_step() const { return last_step_; }
  /// "loss of step 7", where that is the last step that was heard of and its loss was not finite:
  /// nor is what the state computes, whatever its values; else "".
  [[nodiscard]] const std::string& bad_loss() const { return bad_loss_; }
  /// Since the last commit of this process, or its start.
  [[nodiscard]] double age_seconds() const;
  [[nodiscard]] bool saves() const { return !folder_.path().empty(); }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stage : std::uint8_t { none, begun, under_way };
  /// What a failure means: what --on-save-error says, where training goes on or the last save
  /// follows; the end; or another attempt.
  enum class Failing : std::uint8_t { as_asked, before_last, ends_run, tries_again };

  [[nodiscard]] SaveRequest request(SaveContents contents, SaveOf of);
  /// Collective; throws what fails.
  void open(Engine& engine, SaveContents contents, SaveOf of, OutputFolder::Place place);
  /// `source`: of a save that has only begun.
  std::optional<Saved> go_on(SaveSource source, Failing failing);
  /// Collective: runs `body` until it succeeds, for as long as --save-retry says. Whether it did.
  bool keep_trying(std::int64_t step, const std::function<void()>& body);
  /// Runs `body`, which throws on all ranks or on none; false: it failed and the run goes on.
  bool attempt(std::int64_t step, Failing failing, const std::function<void()>& body);
  [[nodiscard]] bool has_checkpoints() const;
  std::optional<Saved> finish();
  /// Rank 0, after a commit; a failure costs nothing but space.
  void tidy_up(std::int64_t step, bool is_finite);
  /// What --overwrite-output-dir asks for.
  void remove_replaced(std::int64_t step);

  CheckpointOptions options_;
  OutputFolder& folder_;
  const RunListeners& listeners_;
  int attempts_ = 0;
  Clock::time_point last_commit_ = Clock::now();  ///< or failure, or start
  std::optional<std::int64_t> last_step_;
  std::int64_t heard_step_ = 0;  ///< the last whose metrics came, counted from 1
  std::string bad_loss_;
  /// bad_loss_ of the last step that computed its loss from the state being saved.
  std::string saved_bad_loss_;
  bool next_is_of_saved_ = false;  ///< whether the next step heard of is such a one
  std::unique_ptr<CheckpointSave> save_;
  Stage stage_ = Stage::none;
  std::int64_t last_started_ = -1;  ///< step, counted from 0
  std::int64_t counts_from_ = 0;    ///< the first step whose flags speak of the stage under way
  bool all_done_ = false;           ///< with it
  bool said_due_ = false;           ///< rank 0, by the clock
  bool due_by_clock_ = false;       ///< heard
  bool postponed_ = false;
  Clock::time_point begin_;
  double blocked_seconds_ = 0;
  std::vector<std::string> removed_;   ///< said when the save has ended
  std::vector<std::string> warnings_;  ///< likewise
};

}  // namespace strata::train
