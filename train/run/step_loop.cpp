#include "train/run/step_loop.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "comm/gather_texts.h"
#include "core/error.h"
#include "train/data/batch_loader.h"
#include "train/run/run_checkpoint.h"

namespace strata::train {
namespace {

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

[[noreturn]] void refuse_floor(const StepReport& report) {
  throw DataError("step " + std::to_string(report.step) +
                  ": gradients overflow at the smallest loss scale " +
                  std::to_string(report.metrics.loss_scale) +
                  "; train in bf16, lower the learning rate, or lower fp16.min_loss_scale");
}

[[noreturn]] void refuse_not_finite(const StepReport& report) {
  throw Error(ExitCode::do_not_restart,
              "step " + std::to_string(report.step) +
                  ": the loss or a gradient is not finite, and updates that run behind their own "
                  "gradient have already changed parameters and optimizer state; lower the "
                  "learning rate, or clip gradients and set --update-time next_step");
}

BatchLoader make_loader(const RunParts& run, const std::shared_ptr<const TokenSource>& source,
                        bool shuffle, BatchEnd end) {
  SampleOrderOptions order;
  order.sequence = run.options.sequence_length;
  order.shuffle = shuffle;
  order.seed = static_cast<std::uint64_t>(run.options.seed);
  return {source, SampleOrder(source->size(), source->name(), order), end};
}

/// `first_sample`: what step 0 would begin with.
FillBatch make_filler(const RunParts& run, const BatchLoader& batches,
                      std::int64_t samples_per_step, std::int64_t first_sample = 0) {
  return [&run, &batches, samples_per_step, first_sample](std::int64_t step, int micro_step,
                                                          const MicroBatch& batch) {
    batches.fill({first_sample + step * samples_per_step, micro_step, run.communicator->rank(),
                  run.communicator->size()},
                 batch.tokens, batch.targets, batch.samples);
  };
}

class StepLoop {
 public:
  explicit StepLoop(RunParts& run)
      : run_(run), options_(run.options), engine_(*run.engine), saver_(*run.saver) {}

  void run_all() {
    RunPosition& position = run_.position;
    const BatchLoader batches =
        make_loader(run_, run_.corpus.training, options_.shuffle, BatchEnd::repeat);
    const FillBatch fill =
        make_filler(run_, batches, options_.global_batch,
                    position.consumed_samples - position.first_step * options_.global_batch);
    clock_.restart();
    while (position.steps_done < options_.steps && !position.stopped) {
      if (run_.stop && run_.stop->requested()) engine_.raise(Flag::stop);
      saver_.raise_flags(engine_, position.steps_done);
      take(engine_.start_step(position.steps_done++, fill, saver_.wants_snapshot()));
      pass_border();
    }
    take(engine_.drain());
    run_.transfers.beside_programs(engine_, [&] { report_saved(run_, saver_.complete()); });
  }

  void evaluate() {
    if (run_.corpus.held_out == nullptr) return;
    run_.status.set_phase(Phase::evaluate);
    const BatchLoader batches = make_loader(run_, run_.corpus.held_out, false, BatchEnd::stop);
    const std::int64_t per_batch = options_.micro_batch * run_.communicator->size();
    const std::int64_t windows = batches.order().windows();
    const double loss = engine_.evaluate((windows + per_batch - 1) / per_batch,
                                         make_filler(run_, batches, per_batch));
    run_.log->write_evaluation(run_.position.steps_done, loss);
    run_.progress->show_evaluation(run_.position.steps_done, loss);
  }

  [[nodiscard]] bool evaluation_is_due() const {
    const std::int64_t every = options_.eval_every_steps;
    return every > 0 && run_.position.steps_done % every == 0;
  }

 private:
  /// Metrics arrive one step late, so that a step is enqueued while the one before still runs.
  void take(const std::optional<kernels::StepMetrics>& metrics) {
    if (!metrics) return;
    StepReport report = run_.meter.complete(*metrics, clock_.lap());
    if (saver_.saves()) report.checkpoint_age_seconds = saver_.age_seconds();
    run_.log->write(report);
    run_.progress->show(report);
    if (run_.breakdown) show(run_.breakdown->complete(report.step, report.seconds));
    if (report.metrics.at_floor != 0) {
      engine_.drain();  // all ranks refuse the same step: none leaves a collective behind
      refuse_floor(report);
    }
    if (engine_.programs().settings.plan.updates == runtime::Updates::gradient &&
        std::isnan(report.metrics.gradient_norm)) {
      engine_.drain();
      refuse_not_finite(report);
    }
    if (is_raised(report.metrics, Flag::stop)) run_.position.stopped = true;
    saver_.hear(report.metrics);
  }

  void show(const std::optional<std::string>& line) {
    if (!line) return;
    run_.progress->finish();
    std::printf("%s\n", line->c_str());
    std::fflush(stdout);
  }

  /// Behind the step that was started last: what saves under way, checkpoints and evaluations that
  /// are due have to do.
  void pass_border() {
    const RunPosition& position = run_.position;
    if (saver_.is_ready()) {
      engine_.settle();
      report_saved(run_, saver_.go_on());
    }
    const bool evaluates = evaluation_is_due();
    const bool saves = position.steps_done < options_.steps && saver_.is_due(position.steps_done);
    if (saves && !position.stopped && engine_.programs().snapshot) {
      engine_.settle();
      saver_.begin(engine_, save_contents(run_));
    }
    const bool stands = saves && !engine_.programs().snapshot;
    if (!evaluates && !stands) return;
    take(engine_.drain());
    if (evaluates) evaluate();
    if (stands && !position.stopped) save(run_, false);
    clock_.restart();
    run_.meter.forget(position.steps_done - 1);
  }

  RunParts& run_;
  const TrainOptions& options_;
  Engine& engine_;
  CheckpointSaver& saver_;
  StepClock clock_;
};

void report_transfers(RunParts& run) {
  const OffloadOptions& offload = run.options.offload;
  if (run.options.metrics.empty() ||
      (offload.optimizer == OffloadTarget::none && offload.parameters == OffloadTarget::none &&
       offload.activations == OffloadTarget::none))
    return;
  run.log->write_transfers(
      run.position.steps_done,
      comm::gather_texts(*run.communicator, run.transfers.describe(*run.engine, *run.disk)));
}

}  // namespace

void run_steps(RunParts& run) {
  run.log.emplace(run.first ? run.options.metrics : "", run.position.first_step > 0
                                                            ? MetricsLog::Begin::append
                                                            : MetricsLog::Begin::empty);
  run.progress.emplace(run.first, run.request.context.stdout_is_terminal, run.options.steps,
                       run.options.steps_per_print);
  StepLoop loop(run);
  loop.run_all();
  run.progress->finish();
  run.print_notes();
  if (const auto bound = run.meter.mean_bound(); run.first && bound && bound->moves())
    std::printf("%s\n", describe(*bound).c_str());
  if (const std::string use = run.device->describe_use(run.engine->arena().bytes());
      run.first && !use.empty())
    std::printf("%s\n", use.c_str());
  if (!loop.evaluation_is_due() && !run.position.stopped) loop.evaluate();
  report_transfers(run);
}

}  // namespace strata::train
