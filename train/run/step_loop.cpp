#include "train/run/step_loop.h"

#include <string>
#include <utility>

#include "comm/fail_together.h"
#include "core/error.h"
#include "train/run/evaluation.h"
#include "train/run/run_checkpoint.h"

namespace strata::train {
namespace {

/// Notes are printed after so many steps: by then Programs have run plainly and as recordings.
constexpr std::int64_t kStepsOfNotes = 3;

Stopped::Why why_stopped(const RunParts& run) {
  if (run.data_failure) return Stopped::Why::data;
  if (!run.nonfinite.end().empty()) return Stopped::Why::not_finite;
  return run.stopped_early() ? Stopped::Why::request : Stopped::Why::all_done;
}

/// Tells that training begins.
BatchLoader begin(RunParts& run) {
  run.listeners.tell(Began{run.position.first_step, run.options.global_batch});
  return training_loader(run);
}

}  // namespace

void StepClock::restart() { last_ = Clock::now(); }

double StepClock::lap(Clock::time_point end) {
  return std::chrono::duration<double>(end - std::exchange(last_, end)).count();
}

StepLoop::StepLoop(RunParts& run)
    : run_(run),
      options_(run.options),
      engine_(*run.engine),
      saver_(*run.saver),
      batches_(begin(run)),
      device_use_([&run] { return run.device->memory(); }) {
  const RunPosition& position = run.position;
  run.output->fail_together([&] {
    ahead_.emplace(
        make_filler(run, batches_, options_.global_batch,
                    position.consumed_samples - position.first_step * options_.global_batch),
        StepShape{options_.global_batch /
                      (options_.micro_batch * engine_.programs().settings.plan.data_ranks()),
                  options_.micro_batch, options_.sequence_length},
        position.steps_done, options_.steps);
  });
  clock_.restart();
}

bool StepLoop::step() {
  RunPosition& position = run_.position;
  if (position.steps_done >= options_.steps || position.stopped) {
    end();
    return false;
  }
  const bool ends =
      asked_ || (run_.stop && run_.stop->requested()) || ahead_->reach(position.steps_done);
  if (ends) engine_.raise(Flag::stop);
  saver_.raise_flags(engine_, position.steps_done);
  const FillBatch fill = [this](std::int64_t step, int micro_step, const MicroBatch& batch) {
    ahead_->give(step, micro_step, batch);
  };
  take(engine_.start_step(position.steps_done++, fill, saver_.wants_snapshot()));
  pass_border();
  return true;
}

void StepLoop::end() {
  take(engine_.drain());
  run_.data_failure = comm::fail_together(*run_.communicator, [&] { ahead_->rethrow(); });
  if (run_.data_failure)  // warned of now, so that no later failure hides it
    run_.listeners.warn(run_.data_failure->message_with_rank() + "; training ends here");
  run_.transfers.beside_programs(engine_, [&] { report_saved(run_, saver_.complete()); });
  run_.listeners.tell(Stopped{why_stopped(run_), run_.position.steps_done, options_.steps});
}

/// Handles metrics, which arrive one step late: a step is enqueued while the one before still runs.
void StepLoop::take(const std::optional<kernels::StepMetrics>& metrics) {
  if (!metrics) return;
  StepDone report = run_.meter.complete(*metrics, clock_.lap(engine_.step_end()));
  report.device_bytes = device_use_.bytes();
  if (saver_.saves()) report.checkpoint_age_seconds = saver_.age_seconds();
  run_.tell(report);
  if (const std::string news = run_.nonfinite.take(report); !news.empty())
    run_.listeners.warn(news);
  // Flag and watch are the same on all ranks, so that all leave the loop after the same step.
  if (is_raised(report.metrics, Flag::stop) || !run_.nonfinite.end().empty())
    run_.position.stopped = true;
  saver_.hear(report.metrics);
  if (run_.position.steps_done - run_.position.first_step <= kStepsOfNotes) run_.print_notes();
}

/// Acts between steps: goes on with a save, begins a save and runs an evaluation, as they are due.
void StepLoop::pass_border() {
  const RunPosition& position = run_.position;
  if (saver_.is_ready()) {
    engine_.settle();
    report_saved(run_, saver_.go_on());
  }
  if (position.steps_done == options_.steps) return;  // the last evaluation comes after the save
  const std::int64_t every = options_.eval_every_steps;
  const bool evaluates = every > 0 && position.steps_done % every == 0;
  const bool saves = saver_.is_due(position.steps_done);
  if (saves && !position.stopped && engine_.programs().find(compile::ProgramKind::snapshot)) {
    engine_.settle();
    saver_.begin(engine_, save_contents(run_));
  }
  const bool stands = saves && !engine_.programs().find(compile::ProgramKind::snapshot);
  if (!evaluates && !stands) return;
  take(engine_.drain());
  if (stands && !position.stopped) save(run_);
  if (evaluates && !position.stopped) evaluate(run_);
  clock_.restart();
  run_.meter.forget(position.steps_done - 1);
}

}  // namespace strata::train
