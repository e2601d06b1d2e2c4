// Chooses the checkpoint that a run goes on from, and loads it into the engine.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/trainer_state.h"
#include "train/config/options.h"
#include "train/engine/engine.h"
#include "train/models/model_family.h"
#include "train/run/earlier_plan.h"
#include "train/run/output_folder.h"

namespace strata::train {

/// True for values of --resume with which the run chooses the checkpoint.
bool leaves_choice(const std::string& resume);

/// Throws DataError if --resume names a folder that is not there. A restart, which goes on from
/// what the run wrote, asks nothing.
void require_resume_target(const std::string& resume, const std::optional<Restart>& restart);

/// A checkpoint that a run goes on from.
struct ResumePoint {
  std::string directory;
  TrainerState state;
  std::int64_t leaves = 0;                ///< leaves of its sums over ranks; 0: not recorded
  std::int64_t micro_batch = 0;           ///< of that run; 0: not recorded
  std::string defaults{};                 ///< its fact of that name (earlier_defaults.h)
  std::optional<std::string> settings{};  ///< its fact of that name (earlier_settings.h)
  TargetPlan plan{};                      ///< its facts (earlier_plan.h)
  std::optional<ModelConfig> model{};     ///< nullopt: it has no config.json
};

/// Finds and loads the checkpoint. All calls are collective. Borrows folder and listeners.
class ResumeSource {
 public:
  /// Throws ConfigError if the run cannot go on from this checkpoint.
  using Terms = std::function<void(const ResumePoint&)>;

  /// `own`: families of models besides those of this repository.
  ResumeSource(const CheckpointOptions& options, std::span<const ModelFamily> own,
               OutputFolder& folder, const RunListeners& listeners)
      : options_(options), own_(own), folder_(folder), listeners_(listeners) {}

  /// Finds the checkpoint to go on from; nullopt: begin anew. A restart goes on from the newest one
  /// that this run wrote, whatever the options say, and says so. If the choice is ours, passes over
  /// unusable ones (checkpoint_directory.h) with a note. Throws DataError if a required one is
  /// missing, or all that this run wrote are unusable.
  std::optional<ResumePoint> find();

  /// Fills the engine from the point's tensors and scalars. If the point turns out to be unusable
  /// and the choice is ours, takes the next older checkpoint, after calling `terms` for it, as the
  /// caller did for `point`. Returns the point that was loaded, and notes about conversions.
  ResumePoint load(Engine& engine, ResumePoint point, const Terms& terms,
                   std::vector<std::string>& notes);

  /// True if the choice is ours (--resume auto, required, or a restart that goes on from what this
  /// run wrote); then a finished run has nothing to do.
  [[nodiscard]] bool goes_on_by_itself() const;

 private:
  /// What rank 0 has chosen; all ranks know it.
  struct Choice {
    std::string directory;   ///< "": begin anew
    bool is_of_run = false;  ///< this run wrote it
  };
  [[nodiscard]] Choice choose_together();
  std::string choose_of_run();
  std::string choose();
  void say_restart(std::int64_t step) const;
  [[noreturn]] void refuse_all() const;
  void pass_over(const PassedOver& passed);
  void warn_of_newer(const std::string& directory);
  void pass_over_or_throw(const std::string& directory, const Error& error);
  [[nodiscard]] ResumePoint open(const std::string& directory);

  CheckpointOptions options_;
  std::span<const ModelFamily> own_;
  OutputFolder& folder_;
  const RunListeners& listeners_;
  std::int64_t before_ =
      std::numeric_limits<std::int64_t>::max();  ///< only steps before it are left to try
  std::vector<std::string> reasons_;
  bool of_run_ = false;  ///< what was chosen last is of an earlier attempt of this run
};

}  // namespace strata::train
