#include "train/engine/program_set.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/error.h"
#include "offload/offload_activations.h"
#include "offload/place_transfers.h"
#include "runtime/autodiff.h"
#include "runtime/layer_major.h"
#include "runtime/lower.h"
#include "runtime/recompute.h"
#include "runtime/staging.h"
#include "runtime/state_names.h"
#include "train/checkpoint/block_writer.h"
#include "train/config/check_options.h"
#include "train/engine/saved_state.h"
#include "train/planning/make_plan.h"
#include "train/planning/read_ahead.h"
#include "train/planning/resident_records.h"
#include "zero/policy.h"

namespace strata::train {
namespace {

using zero::Position;

/// Host memory is one budget: what only the host touches is known, the rest is for transfers.
runtime::TierBytes budgets(const OffloadOptions& options,
                           const runtime::PersistentLayout& persistent, int local_ranks) {
  runtime::TierBytes budget = runtime::kUnlimitedBytes;
  budget[static_cast<std::size_t>(runtime::Tier::device)] = options.device_memory_bytes;
  if (options.host_memory_bytes == runtime::kUnlimited) return budget;
  const std::int64_t mine = options.host_memory_bytes / local_ranks;
  const std::int64_t pageable = persistent.bytes(runtime::Tier::pageable);
  const std::int64_t pinned = persistent.bytes(runtime::Tier::pinned);
  std::int64_t saving = 0;
  for (const runtime::PersistentValue& value : persistent.values())
    if (value.role == runtime::Role::snapshot && value.tier != runtime::Tier::disk)
      saving += value.type.span_bytes();
  if (pageable + pinned > mine) {
    const bool more =
        options.optimizer != OffloadTarget::nvme || options.parameters != OffloadTarget::nvme;
    throw OutOfMemory(
        "out of host memory: each of " + std::to_string(local_ranks) + " ranks may use " +
        std::to_string(mine) + " bytes of the --host-memory budget, and keeps " +
        std::to_string(pageable + pinned - saving) + " of state and inputs there" +
        (saving > 0 ? " and " + std::to_string(saving) + " for saving" : std::string()) +
        ", before anything is transferred; raise the budget" +
        (more ? ", or move more to the disk (--offload-optimizer nvme, "
                "--offload-param nvme)"
              : ""));
  }
  budget[static_cast<std::size_t>(runtime::Tier::pageable)] = pageable;
  budget[static_cast<std::size_t>(runtime::Tier::pinned)] = mine - pageable;
  return budget;
}

/// `share` of what the budget of host memory leaves beside gradients, parameters and windows of the
/// disk.
void keep_in_host_memory(ProgramSet& set, const ProgramRequest& request, double share) {
  const OffloadOptions& options = request.options.offload;
  if (options.optimizer != OffloadTarget::nvme || options.host_memory_bytes == runtime::kUnlimited)
    return;
  runtime::PersistentLayout others;
  zero::declare_state(others, set.units, set.settings);
  const std::int64_t free_bytes = options.host_memory_bytes / request.local_ranks -
                                  others.bytes(runtime::Tier::pinned) -
                                  window_bytes(set.settings, set.units);
  keep_records_in_host_memory(set.settings, set.units,
                              std::llround(share * static_cast<double>(free_bytes)));
}

}  // namespace

std::int64_t ProgramSet::arena_bytes(runtime::Tier tier) const {
  const int t = static_cast<int>(tier);
  std::int64_t bytes = 0;
  for (const auto* program : {&drain, &read_ahead, &snapshot, &evaluate, &generate})
    if (*program) bytes = std::max(bytes, (*program)->arena_bytes[t]);
  for (const auto& [position, program] : train) bytes = std::max(bytes, program.arena_bytes[t]);
  return bytes;
}

std::int64_t ProgramSet::second_places_bytes() const {
  std::int64_t bytes = 0;
  for (const std::string& name : snapshot_records)
    bytes += runtime::room_of(persistent.find(name).type.span_bytes(), runtime::Tier::disk);
  return bytes;
}

runtime::OutletDisk::Outlet ProgramSet::outlet() const {
  // Declared one after another.
  if (snapshot_pieces.empty() || snapshot_pieces.front().tier != runtime::Tier::disk) return {};
  const runtime::PersistentValue& last = persistent.find(snapshot_pieces.back().copy);
  return {persistent.find(snapshot_pieces.front().copy).offset_bytes,
          last.offset_bytes + runtime::room_of(last.type.span_bytes(), runtime::Tier::disk)};
}

namespace {

/// One is filled, one is on its way to the disk, and two so that neither waits for the other.
constexpr int kSnapshotWindows = 4;

/// What host memory is used for beside what must lie there.
struct HostMemoryUse {
  double resident_share = 0;     ///< of what a budget leaves: records that stay
  std::int64_t ahead_bytes = 0;  ///< windows of records read during the step before
  std::int64_t pinned_arena_bytes = runtime::kUnlimited;  ///< at most
};

void declare_saving(ProgramSet& set, SaveMemory saving) {
  if (saving == SaveMemory::none) return;
  const auto room = [&](const char* name, std::int64_t bytes, runtime::Tier tier) {
    set.persistent.add(name, {DType::u8, kernels::Shape{bytes}}, tier, runtime::Role::snapshot);
  };
  room(kSaveBlocks, kBlockWriterBytes, runtime::Tier::pinned);
  const SavedState saved(set);
  room(kSaveArriving, takes_snapshots(saving) ? saved.arriving_bytes() : saved.stretch_bytes(),
       runtime::Tier::pageable);
  if (!takes_snapshots(saving)) return;
  set.snapshot_pieces = zero::list_snapshot(
      set.units, set.settings,
      saving == SaveMemory::windows ? zero::SnapshotCopies::windows : zero::SnapshotCopies::kept);
  zero::declare_snapshot(set.persistent, set.snapshot_pieces);
  set.snapshot_records = zero::list_snapshot_records(set.units, set.settings);
  if (saving == SaveMemory::windows)
    room(kSaveLeaving, saved.leaving_bytes(), runtime::Tier::pageable);
}

ProgramSet build_with(const ProgramRequest& request, const comm::Communicator& communicator,
                      const machine::Machine& machine, const HostMemoryUse& use) {
  const TrainOptions& options = request.options;
  ProgramSet set;
  set.shape = {options.dtype, options.micro_batch, options.sequence_length};
  set.vocabulary = request.model.vocabulary;
  set.seed = options.seed;
  set.initial_loss_scale = initial_loss_scale(options);

  const auto build = [&](ModelUse purpose) {
    return request.build_model ? request.build_model(set.shape, purpose)
                               : build_model(request.model, set.shape, purpose);
  };
  BuiltModel model = build(ModelUse::train);
  apply_weight_decay(model.graph.units, options);
  set.units = model.graph.units;
  set.settings.plan = make_plan(options, set.units, model.graph.blocks, communicator.size());
  set.settings.rank = communicator.rank();
  set.settings.dtype = options.dtype;
  set.settings.optimizer = optimizer_settings(options);
  set.settings.control = control_attributes(options);
  runtime::differentiate(model.graph, {set.settings.plan.gradient.produced});
  runtime::recompute(model.graph, set.settings.plan.recompute, set.settings.plan.recompute_what);
  offload::offload_activations(model.graph, set.settings.plan.activations);

  keep_in_host_memory(set, request, use.resident_share);
  zero::declare_state(set.persistent, set.units, set.settings);
  offload::RecordsAhead ahead;
  ahead.records = records_read_ahead(set.settings, set.units, use.ahead_bytes);
  const auto finish = [&](runtime::Graph& graph, bool uses_ahead, bool reads_ahead) {
    ahead.use = uses_ahead;
    ahead.read = reads_ahead;
    offload::place_transfers(graph, ahead);
    runtime::stage_inputs(graph);
    set.persistent.add_all(graph);
  };
  declare_saving(set, request.saving);
  std::map<Position, runtime::Graph> graphs;
  std::optional<runtime::Graph> snapshot;
  const auto finish_step = [&](Position position, runtime::Graph graph) {
    const bool uses_ahead = zero::begins_step(position), reads_ahead = zero::ends_step(position);
    if (takes_snapshots(request.saving) &&
        zero::takes_snapshot(set.settings.plan.updates, position)) {
      snapshot = graph;
      zero::add_snapshot(*snapshot, set.snapshot_pieces, set.settings);
      finish(*snapshot, uses_ahead, reads_ahead);
      set.snapshot_position = position;
    }
    finish(graph, uses_ahead, reads_ahead);
    graphs[position] = std::move(graph);
  };
  const runtime::Plan& plan = set.settings.plan;
  if (plan.order == runtime::MicroStepOrder::by_layer) {
    runtime::LayerMajorStep step =
        runtime::layer_major(model.graph, model.loss, plan.micro_steps, plan.gradient.accumulated);
    finish_step(Position::only, zero::lower_micro_step(std::move(step.graph), step.losses,
                                                       set.settings, Position::only));
  } else {
    for (const auto& [position, batch] : zero::micro_steps(plan)) {
      if (graphs.contains(position)) continue;
      finish_step(position,
                  zero::lower_micro_step(model.graph, {model.loss}, set.settings, position));
    }
  }
  std::optional<runtime::Graph> drain, read_ahead;
  if (set.settings.plan.updates == runtime::Updates::next_step) {
    drain = zero::lower_drain(model.graph, set.settings);
    finish(*drain, true, false);
  }
  if (!ahead.records.empty()) {
    read_ahead = model.graph;
    read_ahead->nodes.clear();
    finish(*read_ahead, false, true);
  }
  std::optional<runtime::Graph> evaluation;
  if (request.evaluate) {
    BuiltModel forward = build(ModelUse::evaluate);
    evaluation = zero::lower_evaluation(std::move(forward.graph), forward.loss, set.settings);
    offload::place_transfers(*evaluation);
    runtime::stage_inputs(*evaluation);
    runtime::stage_output(*evaluation, runtime::kAgreedWord);
    set.persistent.add_all(*evaluation);
  }

  set.settings.plan.budget_bytes = budgets(options.offload, set.persistent, request.local_ranks);
  runtime::Scheduling scheduling{set.settings.plan.limits, set.settings.plan.budget_bytes};
  std::int64_t& pinned = scheduling.budget_bytes[static_cast<std::size_t>(runtime::Tier::pinned)];
  pinned = std::min(pinned, use.pinned_arena_bytes);
  const auto lower = [&](runtime::Graph graph, const std::string& name) {
    return runtime::lower(
        std::move(graph), set.persistent,
        {name, machine, &communicator, request.scheduled ? &scheduling : nullptr});
  };
  for (auto& [position, graph] : graphs)
    set.train[position] = lower(std::move(graph), "train." + std::string(zero::name_of(position)));
  if (snapshot) set.snapshot = lower(std::move(*snapshot), "train.snapshot");
  if (drain) set.drain = lower(std::move(*drain), "drain");
  if (read_ahead) set.read_ahead = lower(std::move(*read_ahead), "read_ahead");
  if (evaluation) set.evaluate = lower(std::move(*evaluation), "evaluate");
  return set;
}

/// Of one micro-step of each kind, as simulated.
std::int64_t foreseen_ns(const ProgramSet& set) {
  std::int64_t ns = 0;
  for (const auto& [position, program] : set.train) ns += program.foreseen_ns;
  return ns;
}

/// Steps that are foreseen within this factor of one another are equally fast: rates are not known
/// any better.
constexpr double kAsFast = 1.01;

/// With records read ahead into windows of transfers, which stand idle during the backward pass:
/// the arena does not grow. With as many as they hold, unless the step is faster with less: these
/// leave windows to the rest, which otherwise reads, updates and writes one after another.
ProgramSet build_ahead(const ProgramRequest& request, const comm::Communicator& communicator,
                       const machine::Machine& machine, double resident_share,
                       std::int64_t pinned_bytes) {
  ProgramSet plain = build_with(request, communicator, machine, {resident_share, 0, pinned_bytes});
  if (request.options.offload.optimizer != OffloadTarget::nvme ||
      plain.settings.plan.updates != runtime::Updates::next_step)
    return plain;
  const std::int64_t arena = plain.arena_bytes(runtime::Tier::pinned);
  const std::int64_t windows = arena - plain.persistent.bytes(runtime::Tier::pinned);
  std::optional<ProgramSet> best;
  const auto consider = [&](ProgramSet set) {
    if (!best ||
        static_cast<double>(foreseen_ns(set)) * kAsFast < static_cast<double>(foreseen_ns(*best)))
      best = std::move(set);
  };
  std::size_t records = 0;
  for (const std::int64_t quarters : {4, 3, 2, 1}) try {
      const std::int64_t ahead_bytes = windows / 4 * quarters;
      const std::size_t fitting =
          records_read_ahead(plain.settings, plain.units, ahead_bytes).size();
      if (fitting == 0 || fitting == std::exchange(records, fitting)) continue;
      consider(build_with(request, communicator, machine, {resident_share, ahead_bytes, arena}));
    } catch (const OutOfMemory&) {
      // Beside the windows there is too little for the rest, even one after another.
    }
  consider(std::move(plain));
  return std::move(*best);
}

/// What transfers need of host memory is known when they are scheduled: fewer records stay there
/// when that is too much. `build`: with that share of them.
template <typename Build>
ProgramSet build_with_fewer_records(const OffloadOptions& options, const Build& build) {
  for (const double share : {1.0, 0.5, 0.25}) try {
      return build(share);
    } catch (const OutOfMemory&) {
      if (options.optimizer != OffloadTarget::nvme ||
          options.host_memory_bytes == runtime::kUnlimited)
        throw;
    }
  return build(0.0);
}

}  // namespace

ProgramSet build_programs(const ProgramRequest& request, const comm::Communicator& communicator,
                          const machine::Machine& machine) {
  check_options(request.options, communicator.size());
  if (request.local_ranks < 1)
    throw InvalidArgument("ProgramRequest::local_ranks is " + std::to_string(request.local_ranks) +
                          ", expected the ranks of this machine");
  if (!request.scheduled) return build_with(request, communicator, machine, {});
  const OffloadOptions& offload = request.options.offload;
  const auto build = [&](std::int64_t pinned_bytes) {
    return build_with_fewer_records(offload, [&](double share) {
      return build_ahead(request, communicator, machine, share, pinned_bytes);
    });
  };
  if (request.saving != SaveMemory::windows) return build(runtime::kUnlimited);
  // Schedules take as many windows as they may have. Reading ahead needs no more memory than
  // windows of transfers have anyway.
  ProgramRequest standing = request;
  standing.saving = SaveMemory::writing;
  const ProgramSet still = build_with_fewer_records(
      offload, [&](double share) { return build_with(standing, communicator, machine, {share}); });
  std::int64_t window = 0;
  for (const zero::SnapshotPiece& piece :
       zero::list_snapshot(still.units, still.settings, zero::SnapshotCopies::windows))
    window = std::max(window, runtime::room_of(piece.end - piece.begin, runtime::Tier::pinned));
  return build(still.arena_bytes(runtime::Tier::pinned) + kSnapshotWindows * window);
}

ProgramSet build_generation(const ModelConfig& config, const BatchShape& shape,
                            const comm::Communicator& communicator,
                            const machine::Machine& machine) {
  ProgramSet set;
  set.shape = shape;
  set.vocabulary = config.vocabulary;
  BuiltModel model = build_model(config, shape, ModelUse::generate);
  for (runtime::ParameterUnit& unit : model.graph.units) unit.trainable = false;
  set.units = model.graph.units;
  set.settings.rank = communicator.rank();
  set.settings.dtype = shape.dtype;
  set.settings.plan.world = communicator.size();
  set.settings.plan.units = zero::plan_units(set.units, {}, communicator.size());
  zero::declare_state(set.persistent, set.units, set.settings);
  runtime::Graph graph =
      zero::lower_evaluation(std::move(model.graph), runtime::kNoValue, set.settings);
  runtime::stage_inputs(graph);
  runtime::stage_output(graph, kLogits);
  set.persistent.add_all(graph);
  set.generate =
      runtime::lower(std::move(graph), set.persistent, {"generate", machine, &communicator});
  return set;
}

}  // namespace strata::train
