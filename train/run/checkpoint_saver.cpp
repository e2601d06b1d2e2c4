#include "train/run/checkpoint_saver.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/checkpoint/checkpoint_reader.h"

namespace strata::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Adds the time from its construction to its destruction to `seconds`.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += seconds_since(begin_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  Clock::time_point begin_ = Clock::now();
};

/// True if a later attempt may succeed.
bool may_be_mended(ExitCode code) { return code == ExitCode::io || code == ExitCode::host; }

}  // namespace

void CheckpointSaver::raise_flags(Engine& engine, std::int64_t step) {
  last_started_ = step;
  if (stage_ == Stage::under_way && save_->is_busy()) engine.raise(Flag::saving);
  if (folder_.first() && stage_ == Stage::none && options_.every.seconds > 0 && saves() &&
      !said_due_ && seconds_since(last_end_) >= static_cast<double>(options_.every.seconds)) {
    engine.raise(Flag::save_due);
    said_due_ = true;
  }
}

void CheckpointSaver::hear(const kernels::StepMetrics& metrics) {
  heard_step_ = metrics.step + 1;
  bad_loss_ = std::isfinite(metrics.loss) ? "" : fmt::format("loss of step {}", heard_step_);
  if (save_ && heard_step_ >= save_->step() && next_is_of_saved_) {
    saved_bad_loss_ = bad_loss_;
    // A step that is skipped leaves the state as it was, so the next one also computes from it.
    next_is_of_saved_ = heard_step_ == save_->step() || metrics.overflow != 0;
  }
  if (stage_ == Stage::under_way && metrics.step >= counts_from_ &&
      !is_raised(metrics, Flag::saving))
    all_done_ = true;
  if (is_raised(metrics, Flag::save_due)) due_by_clock_ = true;
}

Snapshot CheckpointSaver::wants_snapshot() const {
  return stage_ == Stage::begun ? Snapshot::take : Snapshot::none;
}

bool CheckpointSaver::is_due(std::int64_t step) {
  if (!saves()) return false;
  const bool by_steps = options_.every.steps > 0 && step % options_.every.steps == 0;
  const bool due = std::exchange(due_by_clock_, false) || by_steps;
  if (stage_ == Stage::none) return std::exchange(postponed_, false) || due;
  if (due && !postponed_)
    listeners_.note(
        fmt::format("the checkpoint due at step {} waits, and will be of a later step: that of "
                    "step {} is still being written",
                    step, save_->step()));
  postponed_ = postponed_ || due;
  return false;
}

SaveRequest CheckpointSaver::request(SaveContents contents, SaveOf of) {
  contents.whole_files.push_back({kTrainerStateName, to_text(contents.state)});
  const std::int64_t step = contents.state.step;
  return {.output = folder_.path(),
          .step = step,
          .attempt = {folder_.run_tag(), attempts_++},
          .facts = std::move(contents.facts),
          .whole_files = std::move(contents.whole_files),
          .only_finite = of == SaveOf::finite_state,
          .not_finite = [this] { return saved_bad_loss_; },
          .before_renames = [this, step] { require_lease(step); },
          .after_commit =
              [this, step](const std::string& not_finite) { tidy_up(step, not_finite.empty()); }};
}

void CheckpointSaver::require_lease(std::int64_t step) const {
  if (folder_.watch().lease_ended())
    throw PeerError(
        fmt::format("the launcher no longer counts on this rank, whose lease has ended, so the "
                    "checkpoint of step {} is not committed",
                    step));
}

void CheckpointSaver::tidy_up(std::int64_t step, bool is_finite) {
  lost_.count(step, is_finite);
  std::erase(folder_.replaced(), step);  // the new checkpoint has replaced that one
  // Told at once: the event comes only when all ranks have agreed on the commit.
  if (is_finite) folder_.watch().set_committed(step, folder_.path() + "/" + checkpoint_name(step));
  try {
    // `latest` moves before the checkpoint it names is removed, and only to one that is finite.
    if (is_finite) point_latest(folder_.files(), folder_.path(), step);
    if (is_finite) remove_replaced(step);
    if (options_.keep == 0) return;
    const std::vector<std::string> old = remove_old_checkpoints(
        folder_.files(), folder_.path(), step,
        {.keep = static_cast<int>(options_.keep), .keep_every = options_.keep_every},
        {folder_.run_tag(), attempts_});
    removed_.insert(removed_.end(), old.begin(), old.end());
  } catch (const Error& error) {
    warnings_.emplace_back(error.what());
  }
}

void CheckpointSaver::remove_replaced(std::int64_t step) {
  std::vector<std::int64_t>& others = folder_.replaced();
  if (others.empty()) return;
  { const CheckpointReader mine(folder_.files(), folder_.path() + "/" + checkpoint_name(step)); }
  // Those that cannot be removed stay in the list, and are tried again after the next commit.
  const std::vector<FoundCheckpoint> there = list_checkpoints(folder_.files(), folder_.path());
  std::erase_if(others, [&](std::int64_t other) {
    return std::ranges::find(there, other, &FoundCheckpoint::step) == there.end();
  });
  const std::vector<std::string> gone =
      remove_checkpoints(folder_.files(), folder_.path(), others, {folder_.run_tag(), attempts_});
  removed_.insert(removed_.end(), gone.begin(), gone.end());
  others.clear();
}

bool CheckpointSaver::attempt(std::int64_t step, Failing failing,
                              const std::function<void()>& body) {
  try {
    const Stopwatch blocked(blocked_seconds_);
    body();
    return true;
  } catch (const PeerError&) {
    throw;
  } catch (const Error& error) {
    const std::string lost =
        fmt::format("the checkpoint of step {} could not be written: {}", step, error.what());
    failed_.note(lost);
    folder_.watch().set_failed_save(step, error.what());
    save_.reset();
    stage_ = Stage::none;
    said_due_ = false;
    last_end_ = Clock::now();
    if (failing == Failing::tries_again && may_be_mended(error.exit_code())) {
      retry_->failed(error.what(), lost_.text(step));
      return false;
    }
    if (failing == Failing::ends_run || failing == Failing::tries_again ||
        options_.on_error == SaveFailure::stop)
      throw Error(error.exit_code(), lost + "; " + lost_.rest());
    listeners_.warn(lost +
                    (failing == Failing::before_last ? "; the last checkpoint is next, "
                                                     : "; training goes on, ") +
                    (lost_.are_all() ? "there is no checkpoint to go on from yet"
                                     : "earlier checkpoints are whole"));
    return false;
  }
}

void CheckpointSaver::open(Engine& engine, SaveContents contents, SaveOf of,
                           OutputFolder::Place place) {
  STRATA_CHECK(stage_ == Stage::none, "a save is under way");
  folder_.make_again_if_gone(place);
  begin_ = Clock::now();
  blocked_seconds_ = 0;
  saved_bad_loss_ = heard_step_ == contents.state.step ? bad_loss_ : "";
  next_is_of_saved_ = true;
  save_ =
      std::make_unique<CheckpointSave>(engine, folder_.files(), request(std::move(contents), of));
  stage_ = Stage::begun;
}

void CheckpointSaver::begin(Engine& engine, SaveContents contents) {
  attempt(contents.state.step, Failing::as_asked, [&] {
    open(engine, std::move(contents), SaveOf::any_state, OutputFolder::Place::same_disk);
  });
}

bool CheckpointSaver::is_ready() const {
  return stage_ == Stage::begun || (stage_ == Stage::under_way && all_done_);
}

std::optional<Saved> CheckpointSaver::go_on() {
  return go_on(SaveSource::snapshot, Failing::as_asked);
}

std::optional<Saved> CheckpointSaver::go_on(SaveSource source, Failing failing) {
  bool ended = false;
  attempt(save_->step(), failing, [&] {
    if (stage_ == Stage::begun && source == SaveSource::snapshot)
      save_->write_snapshot();
    else if (stage_ == Stage::begun)
      save_->write_state();
    else
      ended = save_->advance();
    stage_ = Stage::under_way;
    all_done_ = false;
    counts_from_ = last_started_ + 1;
  });
  if (!ended) return {};
  return finish();
}

std::optional<Saved> CheckpointSaver::complete() {
  std::optional<Saved> saved;
  while (stage_ != Stage::none && !saved) saved = go_on(SaveSource::state, Failing::before_last);
  return saved;
}

bool CheckpointSaver::keep_trying(std::int64_t step, const std::function<void()>& body) {
  retry_.emplace(step, std::chrono::seconds(options_.retry_seconds), stop_, listeners_);
  // Rank 0's clock decides, so that all ranks try equally often.
  while (!folder_.from_first(retry_->is_over() ? "" : "try").empty()) {
    if (attempt(step, Failing::tries_again, body)) return true;
    retry_->wait();
  }
  return false;
}

std::optional<Saved> CheckpointSaver::save(Engine& engine, SaveContents contents, bool must,
                                           SaveOf of) {
  const std::int64_t step = contents.state.step;
  OutputFolder::Place place = OutputFolder::Place::same_disk;
  const auto body = [&] {
    open(engine, contents, of, place);
    save_->write_state();
    while (!save_->advance()) continue;
  };
  bool saved = must && options_.on_error == SaveFailure::keep_training && keep_trying(step, body);
  if (!saved) {
    if (must) place = OutputFolder::Place::any_disk;
    saved = attempt(step, must ? Failing::ends_run : Failing::as_asked, body);
  }
  if (!saved) return {};
  std::optional<Saved> result = finish();
  if (result) result->blocked_seconds = result->seconds;
  return result;
}

std::optional<Saved> CheckpointSaver::finish() {
  const std::int64_t step = save_->step();
  SaveResult result = save_->result();
  save_.reset();
  stage_ = Stage::none;
  said_due_ = false;
  if (!result.committed) return {};
  failed_.forget();
  lost_.count(step, result.not_finite.empty());
  folder_.watch().forget_failed_save();
  last_step_ = step;
  last_commit_ = last_end_ = Clock::now();
  Saved saved{step,
              folder_.path() + "/" + checkpoint_name(step),
              result.bytes,
              blocked_seconds_,
              seconds_since(begin_),
              std::move(result.not_finite)};
  for (const std::string& path : std::exchange(removed_, {})) listeners_.print("removed " + path);
  for (const std::string& warning : std::exchange(warnings_, {}))
    listeners_.warn(fmt::format("the checkpoint of step {} is whole, but: {}", step, warning));
  if (!saved.not_finite.empty())
    listeners_.warn(saved.directory + " is not finite: " + saved.not_finite +
                    "; 'latest', --resume auto and --keep count on the newest checkpoint that is");
  return saved;
}

double CheckpointSaver::age_seconds() const { return seconds_since(last_commit_); }

}  // namespace strata::train
