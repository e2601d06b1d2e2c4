#include "train/run/training_run.h"

#include <algorithm>
#include <memory>

#include "comm/factory.h"
#include "comm/gather_texts.h"
#include "core/error.h"
#include "machine/numa.h"
#include "train/config/make_plan.h"
#include "train/planning/memory_target.h"
#include "train/run/alike_ranks.h"
#include "train/run/host_limits.h"
#include "train/run/kept_inputs.h"
#include "train/run/memory_advice.h"
#include "train/run/model_directory.h"
#include "train/run/plan_memory.h"
#include "train/run/publish_worlds.h"
#include "train/run/resume_source.h"
#include "train/run/run_batches.h"
#include "train/run/run_beginning.h"
#include "train/run/run_data.h"
#include "train/run/run_end.h"
#include "train/run/run_engine.h"
#include "train/run/run_parts.h"
#include "train/run/run_profile.h"
#include "train/run/writable.h"

namespace strata::train {
namespace {

void require_checkable_device(const TrainOptions& options) {
  if (!options.check_device) return;
  if (options.device == DeviceChoice::cpu)
    throw ConfigError("--check-device compares a GPU with the CPU; it needs --device cuda");
  if (options.tf32)
    throw ConfigError("--check-device compares products in full fp32; leave out --tf32");
  if (choices_of(options).moves_state())
    throw ConfigError(
        "--check-device runs one instruction at a time on the device and has no "
        "host queues; leave out the offload settings");
}

void open_machine(RunParts& run) {
  const TrainOptions& options = run.options;
  require_checkable_device(options);
  const RankContext& context = run.request.context;
  run.device = std::make_unique<RunDevice>(options, context, *run.communicator);
  comm::require_sums(run.device->communicator().seat());
  const int local_ranks = context.planned_local_world();
  run.machine = run.device->machine(threads_per_rank(options, context), local_ranks);
  run.disk = std::make_unique<RunDisk>(options, *run.communicator,
                                       bytes_to_measure_in(options, run.machine, local_ranks));
  run.disk->add_to(run.machine, local_ranks);
  read_profile(run);
}

/// Opens files, ranks and the output folder, which need no plan.
void open_run(RunParts& run) {
  const RankContext& context = run.request.context;
  require_output(run.options);
  if (run.first) {
    keep_inputs(run.request);
    require_writable(run.options, run.folders);
    require_resume_target(run.options.checkpoint.resume, restart_of(context));
  }
  require_weights(run.options.model);
  require_data(run.options);
  run.communicator = comm::make_communicator(context, "auto", &run.watch);
  run.request.context.most_local_world = static_cast<int>(
      std::ranges::max(comm::gather_numbers(*run.communicator, context.local_world)));
  require_same_settings(run);
  if (!run.options.target.memory.empty()) open_machine(run);
  plan_memory(run);
  open_data(run);
  (void)training_loader(run);  // throws if the data are shorter than one sample
  if (run.corpus.held_out != nullptr) (void)held_out_loader(run);
  run.output.emplace(run.options.checkpoint, run.options.output, context, *run.communicator,
                     run.listeners);
  run.output->fail_together([&] {
    if (run.first) try_writing(run.options, run.folders);
  });
}

/// Advice for a run whose plan does not fit.
std::string advice(const RunParts& run) {
  const RankContext& context = run.request.context;
  std::int64_t host_bytes = machine::available_host_bytes();
  const std::int64_t limit = host_limit_on_cpu(run.options.offload);
  if (run.machine.host_is_device() && limit > 0)
    host_bytes = host_bytes == 0 ? limit : std::min(host_bytes, limit);
  return memory_advice({.model = run.request.model,
                        .options = run.options,
                        .evaluate = run.corpus.held_out != nullptr,
                        .beat = run.beat},
                       {.seat = run.device->communicator().seat(),
                        .machine = run.machine,
                        .memory = {.local_world = context.planned_local_world(),
                                   .device_bytes = run.device->free_bytes(),
                                   .host_bytes = host_bytes}});
}

void build_engine_or_advise(RunParts& run) {
  if (const std::string lacking = build_engine(run); !lacking.empty())
    throw OutOfMemory(lacking + "; " + advice(run));
}

}  // namespace

int threads_per_rank(const TrainOptions& options, const RankContext& context) {
  if (options.threads > 0) return static_cast<int>(options.threads);
  return std::max(
      1, static_cast<int>(machine::allowed_cores().size()) / std::max(1, context.local_world));
}

std::optional<ExitCode> open_training(RunParts& run) {
  run.listeners.tell(Entered{Phase::planning});
  open_run(run);
  find_beginning(run);  // this also settles the steps between saves
  require_same_files(run);
  const RankContext& context = run.request.context;
  if (run.first && context.is_elastic && run.request.micro_batch_in)
    publish_worlds(context, worlds_for(run.options.global_batch, run.request.micro_batch_in),
                   run.options.checkpoint.on_signal);
  run.saver.emplace(run.options.checkpoint, *run.output, run.listeners, run.failed_save,
                    run.lost_steps, run.stop ? &*run.stop : nullptr);
  const bool done = is_done(run);
  if (done && run.options.dump_state.empty()) return leave_done(run);
  if (!run.device) open_machine(run);
  build_engine_or_advise(run);
  if (!done) calibrate(run);
  run.listeners.tell(Entered{Phase::loading});
  run.transfers.beside_programs(*run.engine, [&] { load(run); });
  if (!is_done(run)) return {};  // an older checkpoint may have been loaded
  dump_state(run);
  return leave_done(run);
}

}  // namespace strata::train
