#include "train/run/run_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/gather_texts.h"
#include "core/host_name.h"
#include "machine/numa.h"
#include "plan/disk_writes.h"
#include "train/engine/build_programs.h"
#include "train/engine/saved_state.h"
#include "train/planning/drive_wear.h"
#include "train/planning/planning_text.h"
#include "train/run/checkpoint_room.h"
#include "train/run/host_limits.h"
#include "train/run/plan_report.h"
#include "train/run/room_for_saving.h"
#include "train/run/run_profile.h"

namespace strata::train {
namespace {

/// Finds this rank's device. Collective: ranks exchange the NUMA nodes of their devices. Nodes of
/// several hosts have the same numbers.
std::optional<machine::DevicePlace> device_place(const RunParts& run) {
  const std::optional<int> node = run.device->node();
  const std::string mine =
      fmt::format("{} {} {}", run.request.context.node, host_name(), node.value_or(-1));
  const std::vector<std::string> all = comm::gather_texts(*run.communicator, mine);
  if (!node) return {};
  return machine::DevicePlace{*node, static_cast<int>(std::ranges::count(all, mine))};
}

std::string lacking_memory(const RunParts& run, const compile::StepPrograms& programs) {
  const std::int64_t arena_bytes = programs.arena_bytes(runtime::Tier::device);
  std::string of_device = run.device->lacking_memory(arena_bytes);
  if (!of_device.empty()) return of_device;
  const bool on_cpu = run.machine.host_is_device();
  const std::int64_t host_bytes = programs.arena_bytes(runtime::Tier::pinned) +
                                  programs.arena_bytes(runtime::Tier::pageable) +
                                  (on_cpu ? arena_bytes : 0);
  return lacking_host_memory(host_bytes, run.request.context.local_world);
}

ProgramRequest programs_of(const RunParts& run) {
  ProgramRequest request{run.request.model, run.options};
  request.evaluate = run.corpus.held_out != nullptr;
  request.local_ranks = run.request.context.planned_local_world();
  request.beat = run.beat;
  return request;
}

/// Plans Programs that have room for snapshots, if saves want them and the machine has the memory.
compile::Compiled plan_for_saving(RunParts& run, const ProgramRequest& request) {
  const comm::Seat seat = run.device->communicator().seat();
  RoomForSaving room(
      {*run.communicator, *run.disk, request,
       [&run](const compile::StepPrograms& programs) { return lacking_memory(run, programs); }});
  const std::vector<runtime::SaveMemory> savings = savings_of(run.options);
  compile::Compiled found =
      plan_programs(request, seat, run.machine, savings,
                    [&](const compile::Compiled& tried) { return room.accepts(tried); });
  if (found.fit.fits() && savings.size() > 1 && run.options.plan.empty())
    if (const std::string note = room.note(found.programs.settings.plan.saving); !note.empty())
      run.listeners.note(note);
  return found;
}

/// Checks that the disk has room for checkpoints. Collective.
void require_checkpoint_room(RunParts& run, const compile::StepPrograms& programs) {
  if (!run.saver->saves()) return;
  OutputFolder& output = *run.output;
  output.fail_together([&] {
    if (!run.first) return;
    const std::optional<std::int64_t> free_bytes = output.files().free_bytes(output.path());
    if (!free_bytes) return;
    const CheckpointRoom room{output.path(), SavedState(programs).layout().room_bytes(),
                              *free_bytes,
                              std::ssize(list_checkpoints(output.files(), output.path()))};
    const std::int64_t first_step = run.steps_before();
    if (const std::string note = require_room(room, run.options, first_step); !note.empty())
      run.listeners.note(note);
  });
}

void report_plan(const RunParts& run, const compile::StepPrograms& programs,
                 const std::string& place, double foreseen_seconds) {
  if (!run.first) return;
  const RunFacts facts{
      .ranks = run.communicator->size(),
      .transport = std::string(run.communicator->backend()),
      .device = run.device->description(),
      .place = place,
      .disk = run.disk->description(),
      .foreseen_seconds = foreseen_seconds,
      .drive_wear = drive_wear_text(run.machine.disk,
                                    static_cast<double>(plan::bytes_written_per_step(programs)) *
                                        run.request.context.local_world,
                                    foreseen_seconds),
      .rates = source_of_rates(run.machine),
      .tokens = run.corpus.training->size(),
      .held_out_tokens = run.corpus.held_out != nullptr ? std::optional(run.corpus.held_out->size())
                                                        : std::nullopt};
  print_plan(run.request.config, run.options, programs, facts, run.listeners);
  write_plan(run.options, programs.settings.plan);
  if (!programs.settings.plan.shorter_sequences.empty())
    run.print_notes({run.options.plan +
                     ": shorter_sequences are for programs whose steps have shorter samples; all "
                     "samples of this run are of one length"});
}

/// Registers the part of the pinned arena that transfers between memory and disk use.
void register_windows(RunParts& run) {
  const runtime::Arena& pinned = run.engine->arena(runtime::Tier::pinned);
  const std::int64_t kept = run.engine->programs().persistent.bytes(runtime::Tier::pinned);
  run.disk->register_memory(
      {pinned.base() + kept, static_cast<std::size_t>(pinned.bytes() - kept)});
  run.print_notes();
}

void add_observers(RunParts& run, EngineParts& parts, double foreseen_seconds) {
  parts.observers = {&run.under_way, &run.transfers.observer()};
  for (runtime::Observer* observer : run.meter.observers()) parts.observers.push_back(observer);
  observe_first_steps(run, parts.observers, foreseen_seconds);
  run.listeners.tell(Equipping{
      parts.observers, *run.communicator, run.device->communicator(), run.machine,
      run.steps_before(), run.options.steps, foreseen_seconds, run.request.context.local_world,
      [&device = *run.device] { return device.memory(); }, run.options.steps_per_print});
}

}  // namespace

std::string build_engine(RunParts& run) {
  const TrainOptions& options = run.options;
  const RankContext& context = run.request.context;
  const int threads = threads_per_rank(options, context);
  const std::vector<machine::NumaNode>& nodes = run.machine.processor.numa;
  const machine::RankPlace place =
      place_rank(nodes, context.local_rank, context.local_world, device_place(run));
  const machine::NearMemory near(place);
  const ProgramRequest request = programs_of(run);
  compile::Compiled found = plan_for_saving(run, request);
  if (!found.programs.programs.empty())
    run.listeners.tell(Planned{found.programs, run.machine, run.device->communicator().seat(),
                               run.device->computer(), run.options});
  if (!found.fit.fits()) return lacking_memory(found.fit, request);
  EngineParts parts;
  parts.programs = std::move(found.programs);
  const double foreseen_seconds = foresee_together(run, parts.programs);
  report_plan(run, parts.programs, describe(place, nodes.size()), foreseen_seconds);
  if (std::string lacking = lacking_memory(run, parts.programs); !lacking.empty()) return lacking;
  if (std::string lacking = run.device->prepare(parts.programs, options, run.beat);
      !lacking.empty())
    return lacking;
  run.disk->open(parts.programs.disk_bytes());
  require_checkpoint_room(run, parts.programs);
  run.print_notes();
  parts.site = run.device->make_site(options, threads);
  parts.disk = run.disk->disk();
  parts.beat = run.beat;
  add_observers(run, parts, foreseen_seconds);
  run.engine = std::make_unique<Engine>(std::move(parts));
  register_windows(run);
  run.meter.begin(*run.engine, run.request.model, options, run.machine, foreseen_seconds);
  return "";
}

}  // namespace strata::train
