#include "train/run/resume_source.h"

#include <fmt/core.h>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/file_system.h"
#include "core/integer.h"
#include "core/nearest_name.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/config/settings.h"
#include "train/engine/load_checkpoint.h"
#include "train/engine/step_scalars.h"
#include "train/models/hf_config.h"
#include "train/run/earlier_defaults.h"
#include "train/run/earlier_settings.h"
#include "train/run/resume_terms.h"

namespace strata::train {
namespace {

constexpr const char* kConfigName = "config.json";

}  // namespace

bool leaves_choice(const std::string& resume) {
  // transformers' flag says "true" for the last one.
  return same_word(resume, "auto") || same_word(resume, "required") || same_word(resume, "true");
}

void require_resume_target(const std::string& resume, const std::optional<Restart>& restart) {
  if (restart || same_word(resume, "never") || leaves_choice(resume)) return;
  std::error_code missing;
  if (std::filesystem::is_directory(resume, missing)) return;
  if (const std::string word = suggestion(resume, {"auto", "required", "never"}); !word.empty())
    throw InvalidArgument("--resume " + resume + ": there is no such folder" + word);
  PosixFileSystem files;
  (void)CheckpointReader(files, resume);  // throws what it says of a folder that is not there
}

void ResumeSource::pass_over(const PassedOver& passed) {
  reasons_.push_back(passed.reason);
  listeners_.note("passing over " + passed.path + ": " + passed.reason);
}

/// Called on rank 0 of a restart. Returns the folder of the newest checkpoint that this run wrote;
/// "": it wrote none.
std::string ResumeSource::choose_of_run() {
  const NewestCheckpoint newest = newest_checkpoint(
      folder_.files(), folder_.path(), Verification::sizes, before_, folder_.restart()->run_id);
  for (const PassedOver& passed : newest.refused) pass_over(passed);
  if (newest.found) return newest.found->path;
  if (!reasons_.empty()) refuse_all();
  return "";
}

/// Called on rank 0. Returns the checkpoint's folder, or "" to begin anew.
std::string ResumeSource::choose() {
  if (same_word(options_.resume, "never")) return "";
  if (!leaves_choice(options_.resume)) return options_.resume;
  if (folder_.path().empty()) throw DataError("--resume " + options_.resume + " needs --output");
  const NewestCheckpoint newest =
      newest_checkpoint(folder_.files(), folder_.path(), Verification::sizes, before_);
  for (const PassedOver& passed : newest.refused) pass_over(passed);
  if (newest.found) return newest.found->path;
  if (reasons_.empty() && same_word(options_.resume, "auto")) return "";
  if (reasons_.empty()) throw DataError(folder_.path() + " has no checkpoint to resume from");
  refuse_all();
}

void ResumeSource::refuse_all() const {
  std::string message = "no checkpoint of " + folder_.path() + " can be loaded:";
  for (const std::string& reason : reasons_) message += "\n  " + reason;
  throw DataError(message);
}

ResumeSource::Choice ResumeSource::choose_together() {
  Choice choice;
  folder_.fail_together([&] {
    if (!folder_.first()) return;
    const bool looks = folder_.restart() && !folder_.path().empty();
    if (looks && (of_run_ || before_ == std::numeric_limits<std::int64_t>::max()))
      choice.directory = choose_of_run();
    choice.is_of_run = !choice.directory.empty();
    if (!choice.is_of_run) choice.directory = choose();
  });
  choice.directory = folder_.from_first(choice.directory);
  choice.is_of_run = !folder_.from_first(choice.is_of_run ? "of this run" : "").empty();
  return choice;
}

/// Says what a restart goes on from: `step` of this run, or of another one, or 0.
void ResumeSource::say_restart(std::int64_t step) const {
  if (!folder_.restart()) return;
  listeners_.print(of_run_ ? describe_own(*folder_.restart(), step)
                           : describe_anew(*folder_.restart(), step, !folder_.path().empty()));
}

ResumePoint ResumeSource::open(const std::string& directory) {
  const CheckpointReader reader(folder_.files(), directory);
  const std::string file = directory + "/" + kTrainerStateName;
  ResumePoint point{directory, parse_trainer_state(reader.whole_file(kTrainerStateName), file)};
  for (const auto& [fact, text] : reader.manifest().facts) {
    if (fact == kLeavesFact) point.leaves = parse_integer(text).value_or(0);
    if (fact == kMicroBatchFact) point.micro_batch = parse_integer(text).value_or(0);
    if (fact == kDefaultsFact) point.defaults = text;
    if (fact == kSettingsFact) point.settings = text;
    if (fact == kAskedFact) point.plan.asked = text;
    if (fact == kPlannedFact) point.plan.planned = text;
  }
  if (reader.manifest().find_whole_file(kConfigName) != nullptr)
    point.model =
        parse_model_config(reader.whole_file(kConfigName), directory + "/" + kConfigName, own_);
  if (point.state.step != reader.manifest().step)
    throw DataError(fmt::format("{}: is of step {}, the checkpoint of step {}", file,
                                point.state.step, reader.manifest().step));
  return point;
}

/// Warns of newer checkpoints if a run goes on from an older one of its own folder: they stay
/// there, of another course, until the run has passed their steps.
void ResumeSource::warn_of_newer(const std::string& directory) {
  if (folder_.path().empty()) return;
  const std::filesystem::path named(directory);
  std::vector<FoundCheckpoint> newer;
  bool is_here = false;
  for (const FoundCheckpoint& found : list_checkpoints(folder_.files(), folder_.path())) {
    std::error_code missing;
    if (is_here) newer.push_back(found);
    is_here = is_here || std::filesystem::equivalent(found.path, named, missing);
  }
  if (!newer.empty())
    listeners_.note(
        folder_.path() + " has newer checkpoints, up to " + newer.back().path +
        ": if this run ends before it has written that step, --resume auto goes on from "
        "them and not from what it has saved");
}

/// Passes over a checkpoint after an error that all ranks have. Throws the error if no older one
/// may be tried, and then names one that could be used. Collective.
void ResumeSource::pass_over_or_throw(const std::string& directory, const Error& error) {
  if (!is_unusable(error)) throw;
  if (!goes_on_by_itself()) {
    std::string advice;
    folder_.fail_together([&] {
      if (folder_.first()) advice = advice_on_damage(folder_.files(), directory);
    });
    throw Error(error.exit_code(), error.what() + folder_.from_first(advice));
  }
  pass_over({directory, error.what()});
  before_ = *step_of_checkpoint(directory.substr(directory.rfind('/') + 1));
}

std::optional<ResumePoint> ResumeSource::find() {
  const bool never = same_word(options_.resume, "never");
  if (never && !folder_.restart()) return {};
  for (;;) {
    const Choice choice = choose_together();
    const std::string& directory = choice.directory;
    of_run_ = choice.is_of_run;
    if (directory.empty()) {
      say_restart(0);
      if (!never)
        listeners_.print("nothing to resume in " + folder_.path() + ": starting at step 0");
      return {};
    }
    try {
      std::optional<ResumePoint> point;
      folder_.fail_together([&] { point = open(directory); });
      if (folder_.first() && !goes_on_by_itself()) warn_of_newer(directory);
      say_restart(point->state.step);
      return point;
    } catch (const Error& error) {
      pass_over_or_throw(directory, error);
    }
  }
}

ResumePoint ResumeSource::load(Engine& engine, ResumePoint point, const Terms& terms,
                               std::vector<std::string>& notes) {
  while (true) try {
      folder_.fail_together([&] {
        const CheckpointReader reader(folder_.files(), point.directory, {.beat = engine.beat()});
        notes = load_checkpoint(engine, reader);
        write_scalars(engine, point.state.scalars, point.directory + "/" + kTrainerStateName);
      });
      return point;
    } catch (const Error& error) {
      pass_over_or_throw(point.directory, error);
      point = *find();
      terms(point);
    }
}

bool ResumeSource::goes_on_by_itself() const { return of_run_ || leaves_choice(options_.resume); }

}  // namespace strata::train
