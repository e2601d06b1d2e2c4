#include "train/run/run_end.h"

#include <fmt/core.h>
#include <string>

#include "comm/gather_texts.h"
#include "core/file.h"
#include "train/checkpoint/checkpoint_directory.h"
#include "train/config/make_plan.h"
#include "train/engine/state_digest.h"
#include "train/run/evaluation.h"
#include "train/run/run_checkpoint.h"
#include "train/run/run_profile.h"

namespace strata::train {
namespace {

/// Collective: names the newest finite checkpoint, to go on from.
std::string newest_finite(RunParts& run) {
  std::string newest;
  run.output->fail_together([&] {
    if (!run.first) return;
    const auto found =
        newest_checkpoint(run.output->files(), run.output->path(), Verification::sizes).found;
    newest = found ? "the newest checkpoint that is finite is " + found->path
                   : "no checkpoint in " + run.output->path() + " is finite";
  });
  return run.output->from_first(newest);
}

/// Saves the state of a run that ends because of steps that are not finite, if that helps; says
/// what is left to go on from.
std::string save_finite_state(RunParts& run) {
  if (!run.saver->saves()) return "without --output its weights are lost";
  const std::string step = std::to_string(run.position.steps_done);
  if (!save_finite(run))
    return "values of its state are not finite, either, and not saved; " + newest_finite(run);
  if (run.saver->bad_loss().empty()) return "its state is saved as of step " + step;
  return "its state is saved as of step " + step +
         ", but what it computes is not finite: " + newest_finite(run);
}

/// Says why a run fails although its state is saved; "" if it does not. `left`: what is left to go
/// on from after steps that were not finite.
std::string failure_of(const RunParts& run, const std::string& left) {
  if (!run.nonfinite.end().empty()) return run.nonfinite.end() + "; " + left;
  if (!run.data_failure) return "";
  return fmt::format(
      "{}; the run ends after step {} of {}{}", run.data_failure->message_with_rank(),
      run.position.steps_done, run.options.steps,
      run.saver->saves() ? ", which is saved" : "; without --output its weights are lost");
}

void report_transfers(RunParts& run) {
  if (run.options.metrics.empty() || !choices_of(run.options).moves_state()) return;
  run.tell(Transfers{
      run.position.steps_done,
      comm::gather_texts(*run.communicator, run.transfers.describe(*run.engine, *run.disk))});
}

/// Tells people and files the results when everything is saved. `failure`: as in Closing.
void report(RunParts& run, const std::string& failure) {
  run.print_notes();
  if (const std::string times = run.meter.describe_foreseen(); !times.empty())
    run.listeners.print(times);
  keep_observed(run);
  if (const auto bound = run.meter.mean_bound(); bound && bound->moves())
    run.listeners.print(describe(*bound));
  if (const std::string use = run.device->describe_use(run.engine->arena().bytes()); !use.empty())
    run.listeners.print(use);
  report_transfers(run);
  dump_state(run);
  if (run.options.check_device)
    run.listeners.print(fmt::format("the device agrees with the CPU in {} steps:\n{}",
                                    run.position.steps_done, run.device->compared().to_string()));
  run.tell(Closing{*run.communicator, run.engine->programs(), run.machine,
                   run.device->description(), failure});
}

/// Leaves the other ranks, when all have written; MPI insists on it.
void leave(RunParts& run) {
  if (run.engine) run.engine->forget_recordings();
  if (run.device) run.device->close();
  run.communicator->close();
  run.listeners.tell(Entered{Phase::done});
}

}  // namespace

void dump_state(RunParts& run) {
  if (run.options.dump_state.empty()) return;
  const std::string state = describe_state(*run.engine);
  if (run.first)
    run.late_failures.guard([&] { write_file_atomically(run.options.dump_state, state); });
}

ExitCode finish(RunParts& run) {
  const std::string& nonfinite = run.nonfinite.end();
  std::string left;
  if (nonfinite.empty())
    save_last(run);
  else
    left = save_finite_state(run);
  if (run.stop) run.stop->saved();
  if (!run.position.stopped) evaluate(run);
  const std::string failure = failure_of(run, left);
  report(run, failure);
  const bool on_request = nonfinite.empty() && !run.data_failure && run.stopped_early();
  if (on_request)
    run.listeners.print(fmt::format(
        "stopped on request after step {} of {}{}", run.position.steps_done, run.options.steps,
        run.options.output.empty() ? "; without --output its weights are lost" : ""));
  leave(run);
  if (!nonfinite.empty()) throw Error(ExitCode::do_not_restart, failure);
  if (run.data_failure) throw Error(run.data_failure->code, failure);
  if (on_request) return ExitCode::try_again;
  run.late_failures.throw_if_any(!run.options.output.empty());
  return ExitCode::done;
}

ExitCode leave_done(RunParts& run) {
  run.listeners.print(
      fmt::format("{}: all {} steps are done, so nothing is to do; more --steps go on from here",
                  run.resume_point->directory, run.options.steps));
  leave(run);
  run.late_failures.throw_if_any(!run.options.output.empty());
  return ExitCode::done;
}

}  // namespace strata::train
