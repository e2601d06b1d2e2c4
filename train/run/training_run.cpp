#include "train/run/training_run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "comm/factory.h"
#include "comm/gather_texts.h"
#include "core/error.h"
#include "core/file.h"
#include "kernels/learning_rate.h"
#include "runtime/trace.h"
#include "train/data/token_digest.h"
#include "train/engine/state_digest.h"
#include "train/engine/status_observer.h"
#include "train/engine/step_scalars.h"
#include "train/engine/weights.h"
#include "train/models/hf_config.h"
#include "train/models/presets.h"
#include "train/planning/make_plan.h"
#include "train/run/checkpoint_saver.h"
#include "train/run/corpus.h"
#include "train/run/host_memory.h"
#include "train/run/last_words.h"
#include "train/run/lost_steps.h"
#include "train/run/model_directory.h"
#include "train/run/numa.h"
#include "train/run/output_folder.h"
#include "train/run/plan_for_saving.h"
#include "train/run/plan_report.h"
#include "train/run/progress.h"
#include "train/run/resume_source.h"
#include "train/run/resume_terms.h"
#include "train/run/run_device.h"
#include "train/run/run_disk.h"
#include "train/run/step_meter.h"
#include "train/run/stop_request.h"
#include "train/run/transfer_ledger.h"
#include "train/run/writable.h"

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

class TrainingRun {
 public:
  TrainingRun(const RunRequest& request, StatusPage& status)
      : request_(request),
        options_(request.config.options),  // a copy: resuming may change the accumulation
        first_(request.context.rank == 0),
        observer_(status),
        status_(status) {
    if (options_.checkpoint.on_signal)
      stop_.emplace(stop_limits(options_.checkpoint, request.context.grace),
                    [this](const std::string& why) { give_up(why); });
  }

  ExitCode run() {
    status_.set_phase(Phase::planning);
    require_writable(options_);
    require_weights(options_.model);
    corpus_ = open_corpus(options_, request_.model, options_.model);
    check_tokens(corpus_, options_, request_.context.rank, request_.context.world);
    communicator_ = comm::make_communicator(request_.context, "auto");
    output_.emplace(options_.checkpoint, options_.output, request_.context, *communicator_);
    saver_.emplace(options_.checkpoint, *output_);
    resume_source_.emplace(options_.checkpoint, *output_);
    resume_point_ = resume_source_->find();
    if (resume_point_ || !options_.output.empty()) data_digest_ = digest_tokens(*corpus_.training);
    if (resume_point_) take_terms();
    if (is_done()) return leave_done();
    if (options_.check_device && options_.device == DeviceChoice::cpu)
      throw ConfigError("--check-device compares a GPU with the CPU; it needs --device cuda");
    if (options_.check_device && (options_.offload.optimizer != OffloadTarget::none ||
                                  options_.offload.parameters != OffloadTarget::none ||
                                  options_.offload.activations != OffloadTarget::none))
      throw ConfigError(
          "--check-device runs one instruction at a time on the device and knows no "
          "queues of the host; leave out the offload settings");
    device_ = std::make_unique<RunDevice>(
        options_.check_device ? DeviceChoice::cuda : options_.device, options_.reduction,
        request_.context.local_rank, *communicator_);
    disk_ =
        std::make_unique<RunDisk>(options_.offload, *communicator_, request_.context.local_world);
    build_engine();
    status_.set_phase(Phase::loading);
    transfers_.beside_programs(*engine_, [&] { load(); });
    train();
    finish();
    return stopped_early() ? ExitCode::try_again : ExitCode::done;
  }

 private:
  static constexpr std::size_t kTraceEvents = 100'000;

  void build_engine() {
    const int threads = threads_per_rank(options_, request_.context);
    const std::vector<NumaNode> nodes = find_numa_nodes();
    const RankPlace place = place_rank(nodes, request_.context.local_rank,
                                       request_.context.local_world, device_place());
    place_ = describe(place, nodes.size());
    const NearMemory near(place);
    EngineParts parts;
    const kernels::DeviceCapabilities capabilities = device_->capabilities(threads);
    runtime::MachineRates rates =
        runtime::MachineRates::typical(capabilities, device_->vector_bits());
    disk_->add_to(rates);
    parts.programs = build_programs_for_saving(capabilities, rates);
    report_plan(parts.programs);
    require_memory(parts.programs);
    device_->choose(parts.programs, options_);
    disk_->open(parts.programs.disk_bytes());
    print_notes();
    device_->give_to(parts);
    parts.disk = disk_->disk();
    parts.recordings = options_.device_graphs ? runtime::Recordings::on : runtime::Recordings::off;
    if (options_.check_device) parts.lockstep = &lockstep_;
    parts.observers.push_back(&observer_);
    parts.observers.push_back(&meter_.observer());
    parts.observers.push_back(&transfers_.observer());
    if (!options_.trace.empty()) {
      trace_.emplace(
          request_.context.rank,
          device_->device() != nullptr ? runtime::TraceOf::device : runtime::TraceOf::queues,
          kTraceEvents);
      parts.observers.push_back(&*trace_);
    }
    parts.threads = threads;
    parts.seed = options_.seed;
    parts.initial_loss_scale = initial_loss_scale(options_);
    engine_ = std::make_unique<Engine>(std::move(parts));
    register_windows();
    const kernels::Device* device = device_->device();
    meter_.begin(*engine_, request_.model, options_,
                 device != nullptr ? find_device_peak(device->name()) : std::nullopt, rates);
  }

  /// With room for snapshots where saves want them and the machine has it.
  [[nodiscard]] ProgramSet build_programs_for_saving(
      const kernels::DeviceCapabilities& capabilities, const runtime::MachineRates& rates) {
    const CheckpointOptions& checkpoint = options_.checkpoint;
    const bool saves = saver_->saves();
    const bool snapshots = saves && checkpoint.asynchronous && !options_.check_device &&
                           (checkpoint.every.steps > 0 || checkpoint.every.seconds > 0);
    const auto build = [&](SaveMemory saving) {
      return build_programs({request_.model, options_, corpus_.held_out != nullptr,
                             request_.context.local_world, saving, rates},
                            device_->communicator(), capabilities);
    };
    if (!snapshots) return build(saves ? SaveMemory::writing : SaveMemory::none);
    return plan_for_snapshots({*communicator_, *disk_, request_.context.local_world, build,
                               [this](const ProgramSet& programs) { require_memory(programs); }});
  }

  /// Collective: ranks tell one another the nodes of their devices.
  [[nodiscard]] std::optional<DevicePlace> device_place() {
    const kernels::Device* device = device_->device();
    const std::optional<int> mine =
        device != nullptr ? node_of_device(device->pci_address()) : std::nullopt;
    const std::vector<std::int64_t> nodes = comm::gather_numbers(*communicator_, mine ? *mine : -1);
    if (!mine) return {};
    return DevicePlace{*mine, static_cast<int>(std::ranges::count(nodes, *mine))};
  }

  /// What transfers between memory and disk use of the pinned arena.
  void register_windows() {
    const runtime::Arena& pinned = engine_->arena(runtime::Tier::pinned);
    const std::int64_t kept = engine_->programs().persistent.bytes(runtime::Tier::pinned);
    disk_->register_memory({pinned.base() + kept, static_cast<std::size_t>(pinned.bytes() - kept)});
    print_notes();
  }

  /// Those that are new since the last call.
  void print_notes() {
    std::vector<std::string> notes = device_->notes();
    for (std::string& note : disk_->notes()) notes.push_back(std::move(note));
    for (; first_ && notes_printed_ < notes.size(); ++notes_printed_)
      std::fprintf(stderr, "note: %s\n", notes[notes_printed_].c_str());
  }

  void require_memory(const ProgramSet& programs) const {
    const std::int64_t arena_bytes = programs.arena_bytes(runtime::Tier::device);
    device_->require_memory(arena_bytes);
    require_host_memory(programs.arena_bytes(runtime::Tier::pinned) +
                            programs.arena_bytes(runtime::Tier::pageable) +
                            (device_->device() == nullptr ? arena_bytes : 0),
                        request_.context.local_world);
  }

  void report_plan(const ProgramSet& programs) const {
    if (!first_) return;
    if (options_.print_config) std::fputs(describe(request_.config).c_str(), stdout);
    if (options_.print_plan) std::fputs(programs.settings.plan.to_json().c_str(), stdout);
    if (options_.print_program)
      for (const auto& [position, program] : programs.train)
        std::fputs(program.to_string().c_str(), stdout);
    const RunFacts facts{communicator_->size(), std::string(communicator_->backend()),
                         device_->description(), place_, disk_->description()};
    std::fputs(describe_plan(options_, programs, facts).c_str(), stdout);
    std::fflush(stdout);
  }

  [[nodiscard]] TrainerState trainer_state() const {
    TrainerState state;
    state.step = steps_done_;
    state.consumed_samples =
        consumed_samples_ + (steps_done_ - first_step_) * options_.global_batch;
    state.seed = options_.seed;
    state.global_batch = options_.global_batch;
    state.sequence_length = options_.sequence_length;
    state.shuffle = options_.shuffle;
    state.data_digest = data_digest_;
    state.data_tokens = corpus_.training->size();
    state.optimizer = option_text(options_, "optimizer.type");
    state.state_recipe = option_text(options_, "state_recipe");
    state.dtype = name_of(options_.dtype);
    state.scalars = read_scalars(*engine_);
    return state;
  }

  [[nodiscard]] ResumingRun resuming_run() const {
    return {communicator_->size(), data_digest_,
            static_cast<std::int64_t>(corpus_.training->size()),
            resume_source_->goes_on_by_itself()};
  }

  void take_terms() {
    const std::string note =
        train::take_terms(resume_point_->state, resume_point_->directory, resuming_run(), options_);
    if (first_ && !note.empty()) std::printf("%s\n", note.c_str());
  }

  /// Of an older checkpoint that takes the place of the one that the run was built for.
  void require_terms(const ResumePoint& older) const {
    TrainOptions options = options_;
    (void)train::take_terms(older.state, older.directory, resuming_run(), options);
    if (older.state.global_batch != options_.global_batch)
      throw ConfigError(older.directory + ": an older checkpoint of another global batch (" +
                        std::to_string(older.state.global_batch) + "); name it with --resume");
  }

  /// A loop that starts the run with "--resume auto" until it succeeds needs an end.
  [[nodiscard]] bool is_done() const {
    return resume_point_ && resume_point_->state.step == options_.steps &&
           resume_source_->goes_on_by_itself();
  }

  ExitCode leave_done() {
    if (first_)
      std::printf(
          "%s: all %lld steps are done, so nothing is to do; more --steps go on from here\n",
          resume_point_->directory.c_str(), static_cast<long long>(options_.steps));
    communicator_->close();
    status_.set_phase(Phase::done);
    return ExitCode::done;
  }

  void resume() {
    std::vector<std::string> notes;
    StepClock clock;
    const ResumePoint point = resume_source_->load(
        *engine_, *resume_point_, [this](const ResumePoint& older) { require_terms(older); },
        notes);
    steps_done_ = first_step_ = point.state.step;
    consumed_samples_ = point.state.consumed_samples;
    if (!first_) return;
    if (const std::string note = note_on_leaves(point.leaves, communicator_->size(), options_);
        !note.empty())
      notes.push_back(note);
    for (const std::string& note : notes) std::printf("note: %s\n", note.c_str());
    const double rate = kernels::learning_rate(kernels::schedule_from(control_attributes(options_)),
                                               step_state(*engine_).updates);
    std::printf(
        "resumed from %s: step %lld of %lld, learning rate %.6g, %lld samples consumed, data %s; "
        "loaded in %.2f s\n",
        point.directory.c_str(), static_cast<long long>(steps_done_),
        static_cast<long long>(options_.steps), rate, static_cast<long long>(consumed_samples_),
        data_digest_.c_str(), clock.lap());
    std::fflush(stdout);
  }

  void load() {
    if (resume_point_) return resume();
    const bool stored = ModelFiles::has_weights(options_.model);
    if (first_) {
      std::printf("weights: %s\n",
                  stored ? ("read from " + options_.model).c_str()
                         : ("new, from seed " + std::to_string(options_.seed)).c_str());
      std::fflush(stdout);
    }
    if (stored)
      load_weights(*engine_, ModelFiles(options_.model));
    else
      initialize_weights(*engine_, options_.seed);
  }

  [[nodiscard]] BatchLoader loader(const std::shared_ptr<const TokenSource>& source, bool shuffle,
                                   BatchEnd end) const {
    SampleOrderOptions order;
    order.sequence = options_.sequence_length;
    order.shuffle = shuffle;
    order.seed = static_cast<std::uint64_t>(options_.seed);
    return {source, SampleOrder(source->size(), source->name(), order), end};
  }

  /// `first_sample`: what step 0 would begin with.
  [[nodiscard]] FillBatch filler(const BatchLoader& batches, std::int64_t samples_per_step,
                                 std::int64_t first_sample = 0) const {
    return [this, &batches, samples_per_step, first_sample](std::int64_t step, int micro_step,
                                                            const MicroBatch& batch) {
      batches.fill({first_sample + step * samples_per_step, micro_step, communicator_->rank(),
                    communicator_->size()},
                   batch.tokens, batch.targets, batch.samples);
    };
  }

  void train() {
    const BatchLoader batches = loader(corpus_.training, options_.shuffle, BatchEnd::repeat);
    const FillBatch fill = filler(batches, options_.global_batch,
                                  consumed_samples_ - first_step_ * options_.global_batch);
    MetricsLog log(first_ ? options_.metrics : "",
                   first_step_ > 0 ? MetricsLog::Begin::append : MetricsLog::Begin::empty);
    Progress progress(first_, request_.context.stdout_is_terminal, options_.steps,
                      options_.steps_per_print);
    StepClock clock;
    // Metrics arrive one step late, so that a step is enqueued while the one before still runs.
    const auto take = [&](const std::optional<kernels::StepMetrics>& metrics) {
      if (!metrics) return;
      StepReport report = meter_.complete(*metrics, clock.lap());
      if (saver_->saves()) report.checkpoint_age_seconds = saver_->age_seconds();
      log.write(report);
      progress.show(report);
      if (report.metrics.at_floor != 0) {
        engine_->drain();  // all ranks refuse the same step: none leaves a collective behind
        refuse_floor(report);
      }
      if (engine_->programs().settings.plan.updates == runtime::Updates::gradient &&
          std::isnan(report.metrics.gradient_norm)) {
        engine_->drain();
        refuse_not_finite(report);
      }
      if (is_raised(report.metrics, Flag::stop)) stopped_ = true;
      saver_->hear(report.metrics);
    };
    while (steps_done_ < options_.steps && !stopped_) {
      if (stop_ && stop_->requested()) engine_->raise(Flag::stop);
      saver_->raise_flags(*engine_, steps_done_);
      take(engine_->start_step(steps_done_++, fill, saver_->wants_snapshot()));
      if (saver_->is_ready()) {
        engine_->settle();
        report_saved(log, saver_->go_on());
      }
      const bool evaluation_due = due(options_.eval_every_steps);
      const bool save_due = steps_done_ < options_.steps && saver_->is_due(steps_done_);
      if (save_due && !stopped_ && engine_->programs().snapshot) {
        engine_->settle();
        saver_->begin(*engine_, save_contents());
      }
      const bool stands = save_due && !engine_->programs().snapshot;
      if (!evaluation_due && !stands) continue;
      take(engine_->drain());
      if (evaluation_due) evaluate(log, progress);
      if (stands && !stopped_) save(log, false);
      clock.restart();
      meter_.forget(steps_done_ - 1);
    }
    take(engine_->drain());
    transfers_.beside_programs(*engine_, [&] { report_saved(log, saver_->complete()); });
    progress.finish();
    print_notes();
    if (const auto bound = meter_.mean_bound(); first_ && bound && bound->moves())
      std::printf("%s\n", describe(*bound).c_str());
    if (const std::string use = device_->describe_use(engine_->arena().bytes());
        first_ && !use.empty())
      std::printf("%s\n", use.c_str());
    if (!due(options_.eval_every_steps) && !stopped_) evaluate(log, progress);
    report_transfers(log);
  }

  void report_transfers(MetricsLog& log) {
    const OffloadOptions& offload = options_.offload;
    if (options_.metrics.empty() ||
        (offload.optimizer == OffloadTarget::none && offload.parameters == OffloadTarget::none &&
         offload.activations == OffloadTarget::none))
      return;
    log.write_transfers(steps_done_,
                        comm::gather_texts(*communicator_, transfers_.describe(*engine_, *disk_)));
  }

  [[nodiscard]] bool stopped_early() const { return stopped_ && steps_done_ < options_.steps; }

  [[nodiscard]] bool due(std::int64_t every) const { return every > 0 && steps_done_ % every == 0; }

  [[noreturn]] static void refuse_floor(const StepReport& report) {
    throw DataError("step " + std::to_string(report.step) +
                    ": gradients overflow at the smallest loss scale " +
                    std::to_string(report.metrics.loss_scale) +
                    "; train in bf16, lower the learning rate, or lower fp16.min_loss_scale");
  }

  [[noreturn]] static void refuse_not_finite(const StepReport& report) {
    throw Error(ExitCode::do_not_restart,
                "step " + std::to_string(report.step) +
                    ": the loss or a gradient is not finite, and updates that run behind their own "
                    "gradient have already changed parameters and optimizer state; lower the "
                    "learning rate, or clip gradients and set --update-time next_step");
  }

  void evaluate(MetricsLog& log, Progress& progress) {
    if (corpus_.held_out == nullptr) return;
    status_.set_phase(Phase::evaluate);
    const BatchLoader batches = loader(corpus_.held_out, false, BatchEnd::stop);
    const std::int64_t per_batch = options_.micro_batch * communicator_->size();
    const std::int64_t windows = batches.order().windows();
    const double loss =
        engine_->evaluate((windows + per_batch - 1) / per_batch, filler(batches, per_batch));
    log.write_evaluation(steps_done_, loss);
    progress.show_evaluation(steps_done_, loss);
  }

  /// About the run, for people and tools: nothing that loading needs.
  [[nodiscard]] Facts facts() const {
    return {{"world", std::to_string(communicator_->size())},
            {kLeavesFact, std::to_string(leaves(options_, communicator_->size()))},
            {"zero_stage", std::to_string(options_.zero.stage)},
            {"dtype", std::string(name_of(options_.dtype))},
            {"state_recipe", option_text(options_, "state_recipe")},
            {"run_id", request_.context.run_id},
            {"device", device_->description()},
            {"data_digest", data_digest_}};
  }

  [[nodiscard]] SaveContents save_contents() const {
    SaveContents contents{trainer_state(), facts(), {}};
    std::vector<WholeFile>& files = contents.whole_files;
    for (const auto& [name, text] : device_->files()) files.push_back({name, text});
    files.push_back({"config.json", to_hf_config_json(request_.model, config_text(options_.model),
                                                      options_.dtype)});
    for (auto& [name, text] : tokenizer_files(options_.model)) files.push_back({name, text});
    return contents;
  }

  /// While training stands still.
  void save(MetricsLog& log, bool must) {
    if (!saver_->saves()) return;
    status_.set_phase(Phase::saving);
    transfers_.beside_programs(
        *engine_, [&] { report_saved(log, saver_->save(*engine_, save_contents(), must)); });
  }

  void report_saved(MetricsLog& log, const std::optional<SavedCheckpoint>& saved) const {
    if (!first_ || !saved) return;
    log.write_checkpoint(saved->step, saved->bytes, saved->blocked_seconds, saved->seconds);
    std::printf("wrote %s: %.2f GB in %.2f s", saved->directory.c_str(),
                static_cast<double>(saved->bytes) / 1e9, saved->seconds);
    if (saved->blocked_seconds < saved->seconds)
      std::printf(", training stood still for %.3f s", saved->blocked_seconds);
    std::printf("\n");
    std::fflush(stdout);
  }

  void finish() {
    MetricsLog log(first_ ? options_.metrics : "", MetricsLog::Begin::append);
    save(log, true);
    if (stop_) stop_->saved();
    if (!options_.dump_state.empty()) {
      const std::string state = describe_state(*engine_);
      if (first_) write_file_atomically(options_.dump_state, state);
    }
    if (options_.check_device && first_)
      std::printf("the device agrees with the CPU in %lld steps:\n%s",
                  static_cast<long long>(steps_done_), lockstep_.to_string().c_str());
    if (!options_.trace.empty()) trace_->write(trace_path());
    if (stopped_early() && first_)
      std::printf("stopped on request after step %lld of %lld%s\n",
                  static_cast<long long>(steps_done_), static_cast<long long>(options_.steps),
                  options_.output.empty() ? "; without --output its weights are lost" : "");
    engine_->forget_recordings();
    device_->close();
    communicator_->close();  // nobody leaves before all have written; MPI insists on it
    status_.set_phase(Phase::done);
  }

  /// The time to save after a signal is over. On a thread beside the run, which may be anywhere.
  [[noreturn]] void give_up(const std::string& why) {
    // All ranks have the same to say; without a launcher that says it once, rank 0 does.
    if (first_ || request_.context.status_fd >= 0)
      say_last_words(request_.context, status_, ExitCode::try_again,
                     why + "; " + what_is_lost(options_.output, status_.data().step.load()));
    ::_exit(static_cast<int>(ExitCode::try_again));
  }

  /// Rank 0 writes the named file, others NAME.rankR beside it.
  [[nodiscard]] std::string trace_path() const {
    return first_ ? options_.trace
                  : options_.trace + ".rank" + std::to_string(request_.context.rank);
  }

  const RunRequest& request_;
  TrainOptions options_;
  bool first_;
  StatusObserver observer_;
  std::optional<runtime::TraceRecorder> trace_;
  StepMeter meter_;
  TransferLedger transfers_;
  runtime::LockstepReport lockstep_;
  StatusPage& status_;
  Corpus corpus_;
  std::unique_ptr<comm::Communicator> communicator_;
  std::unique_ptr<RunDevice> device_;
  std::unique_ptr<RunDisk> disk_;
  std::unique_ptr<Engine> engine_;  // after what it borrows
  std::string place_;               ///< among NUMA nodes; empty: there is one
  bool stopped_ = false;            ///< all ranks agreed to stop
  std::int64_t steps_done_ = 0;
  std::string data_digest_;
  std::optional<OutputFolder> output_;
  std::optional<CheckpointSaver> saver_;
  std::optional<ResumeSource> resume_source_;
  std::optional<ResumePoint> resume_point_;
  std::int64_t first_step_ = 0;        ///< of this process
  std::int64_t consumed_samples_ = 0;  ///< before that step
  std::size_t notes_printed_ = 0;
  std::optional<StopRequest> stop_;  // last: its thread looks at the others
};

}  // namespace

int threads_per_rank(const TrainOptions& options, const RankContext& context) {
  if (options.threads > 0) return static_cast<int>(options.threads);
  return std::max(1, static_cast<int>(allowed_cores().size()) / std::max(1, context.local_world));
}

ExitCode run_training(const RunRequest& request, StatusPage& status) {
  return TrainingRun(request, status).run();
}

}  // namespace strata::train
