#include "train/run/run_beginning.h"

#include <fmt/core.h>
#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file_system.h"
#include "kernels/ops/learning_rate.h"
#include "train/checkpoint/check_weights.h"
#include "train/config/make_plan.h"
#include "train/config/settle_steps.h"
#include "train/data/sample_order.h"
#include "train/data/token_digest.h"
#include "train/engine/state_digest.h"
#include "train/engine/weights.h"
#include "train/run/earlier_defaults.h"
#include "train/run/earlier_plan.h"
#include "train/run/earlier_settings.h"
#include "train/run/format_number.h"
#include "train/run/model_directory.h"
#include "train/run/resume_terms.h"
#include "train/run/stored_weights.h"

namespace strata::train {
namespace {

/// Number of samples in one pass over the training data.
std::int64_t samples(const RunParts& run) {
  SampleOrderOptions order;
  order.sequence = run.options.sequence_length;
  const TokenSource& tokens = *run.corpus.training;
  return SampleOrder(tokens.size(), tokens.name(), order).windows();
}

SaidBatch said_batch(const ResolvedConfig& config) {
  SaidBatch said;
  for (const ResolvedField& field : config.fields) {
    const bool in_file = field.origin == Origin::file;
    if (!in_file && field.origin != Origin::command_line) continue;
    if (field.name == "global_batch") said.global = {field.where, in_file};
    if (field.name == "accumulation") said.accumulation = {field.where, in_file};
    if (field.name == "micro_batch") said.micro = true;
  }
  return said;
}

ResumingRun resuming_run(const RunParts& run) {
  return {.world = run.communicator->size(),
          .data_digest = run.data_digest,
          .data_tokens = static_cast<std::int64_t>(run.corpus.training->size()),
          .samples = samples(run),
          .may_be_done = run.resume_source->goes_on_by_itself(),
          .said = said_batch(run.request.config)};
}

/// Checks an older checkpoint that replaces the one the run was built for.
void require_terms(const RunParts& run, const ResumePoint& older) {
  TrainOptions options = run.options;
  (void)take_terms(older.state, older.directory, resuming_run(run), options);
  if (older.state.global_batch != options.global_batch)
    throw ConfigError(
        fmt::format("{}: an older checkpoint of another global batch ({}); name it with --resume",
                    older.directory, older.state.global_batch));
}

/// Tells which checkpoint the run goes on from.
void tell_from(RunParts& run, const ResumePoint& point) {
  const std::string& output = run.options.output;
  std::error_code unknown;
  const bool is_own = !output.empty() && std::filesystem::equivalent(
                                             parent_directory(point.directory), output, unknown);
  run.lost_steps.go_on_from(point.state.step, point.directory, is_own);
  run.listeners.tell(GoesOn{point.state.step, point.directory, is_own});
}

void resume(RunParts& run) {
  using Clock = std::chrono::steady_clock;
  std::vector<std::string> notes;
  const Clock::time_point begin = Clock::now();
  const ResumePoint point = run.resume_source->load(
      *run.engine, *run.resume_point,
      [&run](const ResumePoint& older) { require_terms(run, older); }, notes);
  RunPosition& position = run.position;
  position.steps_done = position.first_step = point.state.step;
  // It may be an older one than was found first.
  if (point.directory != run.resume_point->directory) tell_from(run, point);
  run.resume_point = point;
  position.consumed_samples = point.state.consumed_samples;
  if (const std::string note =
          note_on_leaves(point.leaves, point.micro_batch, run.communicator->size(), run.options);
      !note.empty())
    notes.push_back(note);
  for (const std::string& note : notes) run.listeners.print("note: " + note);
  const double rate = kernels::learning_rate(
      kernels::schedule_from(control_attributes(run.options)), step_state(*run.engine).updates);
  run.listeners.print(fmt::format(
      "resumed from {}: step {} of {}, learning rate {}, {} samples consumed, data {}; loaded in "
      "{}",
      point.directory, position.steps_done, run.options.steps, format_number("%.6g", rate),
      position.consumed_samples, run.data_digest,
      format_number("%.2f s", std::chrono::duration<double>(Clock::now() - begin).count())));
}

/// Changes the options so that the run goes on as the one that wrote the checkpoint.
void go_on_from(RunParts& run, const ResumePoint& point) {
  if (point.model) require_same_model(*point.model, point.directory, run.request.model);
  const std::string defaults =
      keep_earlier_defaults(run.request.config, point.defaults, point.state, run.options);
  const BatchNote batch = take_terms(point.state, point.directory, resuming_run(run), run.options);
  if (!defaults.empty()) run.listeners.print("note: " + defaults);
  if (!batch.text.empty())
    batch.is_warning ? run.listeners.warn(batch.text) : run.listeners.print(batch.text);
  if (const std::string otherwise = note_on_settings(point.settings, run.options);
      !otherwise.empty())
    run.listeners.note(otherwise);
  std::string order = note_on_plan(point.plan, run.target_plan, run.planned_anew_since);
  // Where the sums over ranks are others, too, note_on_leaves says that the bits are.
  if (order.empty() && point.leaves == leaves(run.options, run.communicator->size()))
    order = note_on_micro_batch(point.micro_batch, run.options);
  if (!order.empty()) run.listeners.note(order);
}

}  // namespace

void find_beginning(RunParts& run) {
  settle_steps(run.options, samples(run));
  run.resume_source.emplace(run.options.checkpoint, run.request.own, *run.output, run.listeners);
  run.resume_point = run.resume_source->find();
  if (run.resume_point || !run.options.output.empty())
    run.data_digest = digest_tokens(*run.corpus.training, run.beat);
  if (run.resume_point) {
    tell_from(run, *run.resume_point);
    go_on_from(run, *run.resume_point);
  }
  if (const std::string epochs = describe_epochs(run.options, samples(run)); !epochs.empty())
    run.listeners.print(epochs);
  if (run.options.epochs > 0)  // else resolve() has looked
    for (const std::string& what :
         {describe_unfinished_warmup(run.options), describe_ended_schedule(run.options)})
      if (!what.empty()) run.listeners.warn(what);
  const StepRange& traced = run.options.trace_steps;
  if (!run.options.trace.empty() && traced.first > run.options.steps)
    throw InvalidArgument(
        fmt::format("--trace-steps begins with step {}, the run ends with step {}", traced.first,
                    run.options.steps));
  const std::int64_t done = run.steps_before();
  if (!run.options.trace.empty() && traced.last <= done)
    run.listeners.warn(fmt::format(
        "--trace-steps ends with step {}, the run goes on after step {}: the trace will be empty",
        traced.last, done));
  const SaveInterval& every = run.options.checkpoint.every;
  if (run.options.output.empty())
    run.listeners.print("nothing will be saved: no --output names a folder");
  else if (every.steps == 0 && every.seconds == 0)
    run.listeners.print("saved when all steps are done; on the way, too, with --save-every N");
}

bool is_done(const RunParts& run) {
  return run.resume_point && run.resume_point->state.step == run.options.steps &&
         run.resume_source->goes_on_by_itself();
}

void load(RunParts& run) {
  if (run.resume_point) return resume(run);
  const TrainOptions& options = run.options;
  const bool stored = ModelFiles::has_weights(options.model);
  run.listeners.print("weights: " + (stored ? "reading " + options.model
                                            : fmt::format("new, from seed {}", options.seed)));
  if (stored) {
    run.print_notes(
        load_stored_weights(*run.engine, options.model, run.request.model, *run.communicator));
    PosixFileSystem files;  // errors of the folder itself were thrown above
    check_weights(files, resolve_model_directory(options.model), run.communicator->rank(),
                  run.communicator->size(), run.beat);
  } else {
    initialize_weights(*run.engine, options.seed);
  }
}

}  // namespace strata::train
