#include "train/run/step_loop.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "comm/together.h"
#include "core/error.h"
#include "train/run/batches_ahead.h"
#include "train/run/evaluation.h"
#include "train/run/run_batches.h"
#include "train/run/run_checkpoint.h"

namespace strata::train {
namespace {

/// By then every Program has run plainly, and again as a recording.
constexpr std::int64_t kStepsOfNotes = 3;

/// Seconds between two arrivals of metrics.
class StepClock {
 public:
  void restart() { last_ = Clock::now(); }
  double lap() {
    const Clock::time_point now = Clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

class StepLoop {
 public:
  explicit StepLoop(RunParts& run)
      : run_(run), options_(run.options), engine_(*run.engine), saver_(*run.saver) {}

  void run_all() {
    RunPosition& position = run_.position;
    const BatchLoader batches = training_loader(run_);
    std::optional<BatchesAhead> ahead;
    run_.output->together([&] {
      ahead.emplace(
          make_filler(run_, batches, options_.global_batch,
                      position.consumed_samples - position.first_step * options_.global_batch),
          StepShape{options_.global_batch /
                        (options_.micro_batch * run_.engine->programs().settings.plan.data_ranks()),
                    options_.micro_batch, options_.sequence_length},
          position.steps_done, options_.steps);
    });
    const FillBatch fill = [&ahead](std::int64_t step, int micro_step, const MicroBatch& batch) {
      ahead->give(step, micro_step, batch);
    };
    clock_.restart();
    while (position.steps_done < options_.steps && !position.stopped) {
      const bool ends = (run_.stop && run_.stop->requested()) || ahead->reach(position.steps_done);
      if (ends) engine_.raise(Flag::stop);
      saver_.raise_flags(engine_, position.steps_done);
      take(engine_.start_step(position.steps_done++, fill, saver_.wants_snapshot()));
      pass_border();
    }
    take(engine_.drain());
    run_.data_failure = comm::together(*run_.communicator, [&] { ahead->rethrow(); });
    if (run_.data_failure)  // nothing that fails from here on hides it
      run_.console.warn(run_.data_failure->message_with_rank() + "; training ends here");
    run_.transfers.beside_programs(engine_, [&] { report_saved(run_, saver_.complete()); });
  }

 private:
  /// Metrics arrive one step late, so that a step is enqueued while the one before still runs.
  void take(const std::optional<kernels::StepMetrics>& metrics) {
    if (!metrics) return;
    StepReport report = run_.meter.complete(*metrics, clock_.lap());
    if (saver_.saves()) report.checkpoint_age_seconds = saver_.age_seconds();
    run_.log->write(report);
    run_.progress->show(report);
    if (run_.breakdown)
      if (const auto line = run_.breakdown->complete(report.step, report.seconds))
        run_.console.print(*line);
    if (const std::string news = run_.nonfinite.take(report); !news.empty())
      run_.console.warn(news);
    // The same on all ranks: all leave the loop after the same step.
    if (is_raised(report.metrics, Flag::stop) || !run_.nonfinite.end().empty())
      run_.position.stopped = true;
    saver_.hear(report.metrics);
    if (run_.position.steps_done - run_.position.first_step <= kStepsOfNotes) run_.print_notes();
  }

  /// Behind the step that was started last: what saves under way, checkpoints and evaluations that
  /// are due have to do.
  void pass_border() {
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

  RunParts& run_;
  const TrainOptions& options_;
  Engine& engine_;
  CheckpointSaver& saver_;
  StepClock clock_;
};

}  // namespace

void run_steps(RunParts& run) {
  const std::string metrics = run.first ? run.options.metrics : "";
  if (!metrics.empty() && run.position.first_step == 0)
    if (const std::string old = put_earlier_metrics_aside(metrics); !old.empty())
      run.console.note(metrics + " held the metrics of an earlier run, which are in " + old +
                       " now");
  run.log.emplace(metrics, run.position.first_step, [&run](const IoError& error) {
    run.late_failures.add(error.exit_code(), error.what());
  });
  run.progress.emplace(
      run.console,
      ProgressOptions{.steps = run.options.steps,
                      .every_steps = run.options.steps_per_print,
                      .log_every = std::chrono::seconds(run.options.log_every_seconds)});
  StepLoop(run).run_all();
  run.progress->finish();
}

}  // namespace strata::train
