#include "compile/compile.h"

#include <fmt/core.h>
#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compile/read_ahead.h"
#include "core/at_once.h"
#include "core/check.h"
#include "core/error.h"
#include "offload/offload_activations.h"
#include "offload/place_transfers.h"
#include "runtime/graph/state_names.h"
#include "runtime/passes/autodiff.h"
#include "runtime/passes/infer_distributions.h"
#include "runtime/passes/layer_major.h"
#include "runtime/passes/recompute.h"
#include "runtime/passes/saved_values.h"
#include "runtime/passes/staging.h"
#include "runtime/program/arena_alignment.h"
#include "runtime/program/lower.h"
#include "step/check_plan.h"
#include "zero/policy.h"

namespace strata::compile {
namespace {

using runtime::Graph;
using runtime::Tier;
using zero::MicroStepKind;

/// As kScheduledWork, of a rough schedule.
constexpr std::int64_t kRoughWork = 5;

constexpr std::size_t index_of(Tier tier) { return static_cast<std::size_t>(tier); }

/// Runs after the last pass: ends the process if an operand's distribution does not suit its node.
void finish(const ProgramKey& key, Graph& graph, const comm::MeshSeat& where) {
  const std::string problem = runtime::infer_distributions(graph, where.mesh);
  STRATA_CHECK(problem.empty(), name_of(key), problem);
}

enum class Extent : std::uint8_t { step, all };

bool is_of_step(const ProgramKey& key) {
  return key.is_train() || key.kind == ProgramKind::drain || key.kind == ProgramKind::read_ahead;
}

class Compiling {
 public:
  Compiling(const TrainingModel& model, const runtime::Plan& plan, const machine::Machine& machine,
            const comm::MeshSeat& where, Effort effort)
      : model_(model), plan_(plan), machine_(machine), where_(where), effort_(effort) {
    set_.shape = plan.shape;
    set_.vocabulary = model.vocabulary;
    set_.seed = model.seed;
    set_.initial_loss_scale = model.initial_loss_scale;
    set_.settings = settings_of(model, plan, where);
  }

  /// `made`: the Programs that need not be made again.
  Compiled run(Extent extent, std::map<ProgramKey, runtime::Program> made = {}) {
    set_.programs = std::move(made);
    BuiltModel built = model_.build(plan_.shape, ModelUse::train);
    set_.units = built.graph.units;
    const auto rules = kernels::StepRules::from(model_.control);
    step::require_none(step::find_problems(plan_, set_.units, &rules));
    finish_micro_batch(built.graph);
    step::declare_state(set_.persistent, set_.units, set_.settings);
    ahead_.records = records_read_ahead(set_.settings, set_.units, plan_.read_ahead_bytes);
    declare_saving();
    add_steps(built, 0);
    add_between_steps(built.graph);
    if (plan_.evaluates) add_evaluation(0);
    for (const std::int64_t shorter : plan_.shorter_sequences) {
      BuiltModel of_length = model_.build(shape_of(shorter), ModelUse::train);
      finish_micro_batch(of_length.graph);
      add_steps(of_length, shorter);
      if (plan_.evaluates) add_evaluation(shorter);
    }
    return lower_all(extent);
  }

 private:
  /// `shorter`: ProgramKey::shorter_sequence.
  [[nodiscard]] runtime::BatchShape shape_of(std::int64_t shorter) const {
    runtime::BatchShape shape = plan_.shape;
    if (shorter > 0) shape.sequence = shorter;
    return shape;
  }

  /// Adds all else that a micro-batch computes to its forward pass, whatever the ranks.
  void finish_micro_batch(Graph& graph) const {
    std::vector<bool> frozen;
    for (const runtime::UnitPlan& unit : plan_.units) frozen.push_back(!unit.recipe.trainable);
    runtime::differentiate(graph, {plan_.gradient.produced, std::move(frozen)});
    const auto actions = runtime::saved_actions(graph, plan_.saved);
    runtime::recompute(graph, actions);
    offload::offload_activations(graph, actions);
  }

  /// Bytes of copies in host memory.
  struct SnapshotBytes {
    std::int64_t pinned = 0;
    std::int64_t pageable = 0;
  };

  static SnapshotBytes bytes_of(const std::vector<step::SnapshotPiece>& pieces) {
    SnapshotBytes bytes;
    for (const step::SnapshotPiece& piece : pieces)
      (piece.tier == Tier::pinned ? bytes.pinned : bytes.pageable) +=
          runtime::room_of(piece.end - piece.begin, piece.tier);
    return bytes;
  }

  /// Returns the bytes by which another rank's copies take more than this one's: what is no copy,
  /// and what alignment adds, is not the same on all.
  [[nodiscard]] SnapshotBytes bytes_to_largest_snapshot() const {
    const SnapshotBytes mine = bytes_of(set_.snapshot_pieces);
    SnapshotBytes most = mine;
    step::StepSettings settings = set_.settings;
    for (int rank = 0; rank < settings.plan.mesh.ranks(); ++rank) {
      settings.at = comm::point_of(settings.plan.mesh, rank);
      const SnapshotBytes other = bytes_of(step::list_snapshot(set_.units, settings));
      most = {std::max(most.pinned, other.pinned), std::max(most.pageable, other.pageable)};
    }
    return {most.pinned - mine.pinned, most.pageable - mine.pageable};
  }

  void declare_saving() {
    if (plan_.saving == runtime::SaveMemory::none) return;
    const bool windows = plan_.saving == runtime::SaveMemory::windows;
    const bool snapshots = takes_snapshots(plan_.saving);
    const SaveRooms rooms = model_.save_rooms(set_.units, set_.settings);
    const auto room = [&](const char* name, std::int64_t bytes, Tier tier) {
      set_.persistent.add(name, {DType::u8, kernels::Shape{bytes}}, tier, runtime::Role::snapshot);
    };
    room(runtime::kSaveBlocks, rooms.blocks, Tier::pinned);
    std::int64_t arriving = rooms.arriving;
    if (snapshots) arriving = windows ? rooms.windows_arriving : rooms.snapshot_arriving;
    room(runtime::kSaveArriving, arriving, Tier::pageable);
    if (!snapshots) return;
    set_.snapshot_pieces =
        step::list_snapshot(set_.units, set_.settings,
                            windows ? step::SnapshotCopies::windows : step::SnapshotCopies::kept);
    step::declare_snapshot(set_.persistent, set_.snapshot_pieces);
    if (!windows) {
      const SnapshotBytes rest = bytes_to_largest_snapshot();
      room(runtime::kSnapshotRest, rest.pinned, Tier::pinned);
      room(runtime::kSnapshotHostRest, rest.pageable, Tier::pageable);
    }
    set_.snapshot_records = step::list_snapshot_records(set_.units, set_.settings);
    if (windows) room(runtime::kSaveLeaving, rooms.leaving, Tier::pageable);
  }

  void add(const ProgramKey& key, Graph graph, bool uses_ahead, bool reads_ahead) {
    ahead_.use = uses_ahead;
    ahead_.read = reads_ahead;
    offload::place_transfers(graph, ahead_);
    runtime::stage_inputs(graph);
    finish(key, graph, where_);
    graphs_.emplace(key, std::move(graph));
  }

  void add_step(const MicroStepKind& micro_step, std::int64_t shorter, Graph graph) {
    const bool uses_ahead = micro_step.begins_step, reads_ahead = micro_step.ends_step;
    if (takes_snapshots(plan_.saving) && step::takes_snapshot(plan_.updates, micro_step)) {
      Graph snapshot = graph;
      step::add_snapshot(snapshot, set_.snapshot_pieces, set_.settings);
      add({ProgramKind::snapshot, micro_step, shorter}, std::move(snapshot), uses_ahead,
          reads_ahead);
    }
    add({ProgramKind::train, micro_step, shorter}, std::move(graph), uses_ahead, reads_ahead);
  }

  void add_steps(const BuiltModel& built, std::int64_t shorter) {
    if (plan_.order == runtime::MicroStepOrder::by_layer) {
      runtime::LayerMajorStep step = runtime::layer_major(
          built.graph, built.loss, plan_.micro_steps, plan_.gradient.accumulated);
      return add_step(MicroStepKind::only, shorter,
                      step::lower_micro_step(std::move(step.graph), step.losses, set_.settings,
                                             MicroStepKind::only));
    }
    for (const auto& [micro_step, batch] : zero::micro_steps(plan_))
      if (!graphs_.contains({ProgramKind::train, micro_step, shorter}))
        add_step(micro_step, shorter,
                 step::lower_micro_step(built.graph, {built.loss}, set_.settings, micro_step));
  }

  void add_between_steps(const Graph& graph) {
    if (plan_.updates == runtime::Updates::next_step)
      add({ProgramKind::drain}, step::lower_drain(graph, set_.settings), true, false);
    if (ahead_.records.empty()) return;
    Graph read = graph;
    read.nodes.clear();
    add({ProgramKind::read_ahead}, std::move(read), false, true);
  }

  void add_evaluation(std::int64_t shorter) {
    BuiltModel forward = model_.build(shape_of(shorter), ModelUse::evaluate);
    Graph graph = step::lower_evaluation(std::move(forward.graph), forward.loss, set_.settings);
    offload::place_transfers(graph);
    runtime::stage_inputs(graph);
    runtime::stage_output(graph, runtime::kAgreedWord);
    const ProgramKey key{ProgramKind::evaluate, MicroStepKind::only, shorter};
    finish(key, graph, where_);
    graphs_.emplace(key, std::move(graph));
  }

  /// Divides host memory: pageable memory holds persistent values alone, so its size is known, and
  /// transfers get the rest. Returns what is too much if these values exceed the budget.
  [[nodiscard]] std::optional<KeptTooMuch> limit_host_memory(runtime::TierBytes& budget) const {
    if (plan_.host_bytes == runtime::kUnlimited) return {};
    const std::int64_t pageable = set_.persistent.bytes(Tier::pageable);
    const std::int64_t pinned = set_.persistent.bytes(Tier::pinned);
    if (pageable + pinned > plan_.host_bytes) {
      std::int64_t saving = 0;
      for (const runtime::PersistentValue& value : set_.persistent.values())
        if (value.role == runtime::Role::snapshot && value.tier != Tier::disk)
          saving += value.type.span_bytes();
      return KeptTooMuch{plan_.host_bytes, pageable + pinned - saving, saving};
    }
    budget[index_of(Tier::pageable)] = std::min(budget[index_of(Tier::pageable)], pageable);
    std::int64_t& rest = budget[index_of(Tier::pinned)];
    rest = std::min(rest, plan_.host_bytes - pageable);
    return {};
  }

  /// Shorter sequences use the same state; their inputs begin where those of the longest begin.
  void lay_out_persistent() {
    for (const auto& [key, graph] : graphs_)
      if (key.shorter_sequence == 0) set_.persistent.add_state(graph);
    for (const auto& [key, graph] : graphs_)
      if (key.shorter_sequence == 0) set_.persistent.add_inputs(graph);
    for (const auto& [key, graph] : graphs_)
      if (key.shorter_sequence > 0) set_.persistent.add_state(graph);
  }

  Compiled lower_all(Extent extent) {
    lay_out_persistent();
    std::int64_t work = 0;
    for (const auto& [key, graph] : graphs_) work += std::ssize(graph.nodes);
    runtime::TierBytes budget = plan_.budget_bytes;
    Fit short_fit;
    short_fit.kept_too_much = limit_host_memory(budget);
    if (short_fit.kept_too_much) return {{}, std::move(short_fit), work};
    for (auto& [key, lowered] : lowered_graphs(extent, budget)) {
      if (const auto* error = std::get_if<std::exception_ptr>(&lowered))
        std::rethrow_exception(*error);
      if (auto* shortage = std::get_if<runtime::Shortage>(&lowered)) {
        short_fit.tiers[index_of(shortage->tier)] = {shortage->floor_bytes, shortage->budget_bytes};
        short_fit.shortage = std::move(*shortage);
        return {{}, std::move(short_fit), work};
      }
      const runtime::Program& made = set_.programs[key] =
          std::get<runtime::Program>(std::move(lowered));
      if (!plan_.scheduled) continue;
      const std::int64_t scheduled = effort_ == Effort::full ? kScheduledWork : kRoughWork;
      work += (scheduled - 1) * std::ssize(made.instructions);
    }
    Fit fit = find_fit(set_, budget);
    return {std::move(set_), std::move(fit), work};
  }

  using Lowered = std::variant<runtime::Program, runtime::Shortage, std::exception_ptr>;
  struct LoweredGraph {
    ProgramKey key;
    Lowered lowered;
  };

  /// Lowers the Graphs of Programs that are still to be made, at the same time: in their order up
  /// to the first one that lacks memory or throws, if one does, however they run.
  std::vector<LoweredGraph> lowered_graphs(Extent extent, const runtime::TierBytes& budget) {
    std::vector<std::pair<const ProgramKey, Graph>*> open;
    for (auto& one : graphs_)
      if (!set_.programs.contains(one.first) && (extent == Extent::all || is_of_step(one.first)))
        open.push_back(&one);
    std::atomic<std::size_t> first_ended = open.size();
    std::vector<std::optional<LoweredGraph>> made =
        all_at_once(open.size(), [&](std::size_t i) -> std::optional<LoweredGraph> {
          if (i > first_ended) return {};
          LoweredGraph one{open[i]->first, lowered(*open[i], budget)};
          if (!std::holds_alternative<runtime::Program>(one.lowered))
            for (std::size_t known = first_ended;
                 i < known && !first_ended.compare_exchange_weak(known, i);)
              continue;
          return one;
        });
    std::vector<LoweredGraph> all;
    for (std::size_t i = 0; i < std::min(made.size(), first_ended + 1); ++i)
      all.push_back(std::move(*made[i]));
    return all;
  }

  /// Lowers one Graph. Returns what that throws, so that it is told in its turn.
  Lowered lowered(std::pair<const ProgramKey, Graph>& one, const runtime::TierBytes& budget) const {
    const runtime::LowerOptions options{name_of(one.first), machine_, where_};
    try {
      if (!plan_.scheduled) return runtime::lower(std::move(one.second), set_.persistent, options);
      auto found = runtime::lower_scheduled(std::move(one.second), set_.persistent, options,
                                            {plan_.limits, budget, effort_});
      return std::visit([](auto&& made) -> Lowered { return std::move(made); }, std::move(found));
    } catch (...) {
      return std::current_exception();
    }
  }

  const TrainingModel& model_;
  const runtime::Plan& plan_;
  const machine::Machine& machine_;
  const comm::MeshSeat& where_;
  const Effort effort_;
  StepPrograms set_;
  offload::RecordsAhead ahead_;
  std::map<ProgramKey, Graph> graphs_;
};

void check_machine(const runtime::Plan& plan, const machine::Machine& machine,
                   const comm::MeshSeat& where) {
  const bool cpu = plan.backend == kernels::DeviceCapabilities::Backend::cpu;
  if (cpu != machine.host_is_device())
    throw InvalidArgument(fmt::format("the Plan is for {} (backend), and {} is what computes here",
                                      cpu ? "a CPU" : "a GPU", cpu ? "a GPU" : "the CPU"));
  for (int i = 0; i < comm::kMeshAxes; ++i) {
    const auto axis = static_cast<comm::MeshAxis>(i);
    if (plan.mesh.along(axis) != where.mesh.along(axis))
      throw InvalidArgument(fmt::format("the Plan is for {} ranks (mesh.{}), and there are {}",
                                        plan.mesh.along(axis), name_of(axis),
                                        where.mesh.along(axis)));
  }
}

}  // namespace

step::StepSettings settings_of(const TrainingModel& model, const runtime::Plan& plan,
                               const comm::MeshSeat& where) {
  step::StepSettings settings;
  settings.plan = plan;
  settings.at = where.at;
  settings.optimizer = model.optimizer;
  settings.control = model.control;
  return settings;
}

Compiled compile(const TrainingModel& model, const runtime::Plan& plan,
                 const machine::Machine& machine, const comm::MeshSeat& where, Effort effort) {
  check_machine(plan, machine, where);
  return Compiling(model, plan, machine, where, effort).run(Extent::all);
}

Compiled compile_step(const TrainingModel& model, const runtime::Plan& plan,
                      const machine::Machine& machine, const comm::MeshSeat& where, Effort effort) {
  check_machine(plan, machine, where);
  return Compiling(model, plan, machine, where, effort).run(Extent::step);
}

Compiled compile_rest(const TrainingModel& model, StepPrograms step,
                      const machine::Machine& machine, const comm::MeshSeat& where, Effort effort) {
  const runtime::Plan plan = std::move(step.settings.plan);
  return Compiling(model, plan, machine, where, effort).run(Extent::all, std::move(step.programs));
}

StepPrograms compile_generation(const ModelFunction& build, const runtime::BatchShape& shape,
                                std::int64_t vocabulary, const machine::Machine& machine,
                                const comm::MeshSeat& where) {
  StepPrograms set;
  set.shape = shape;
  set.vocabulary = vocabulary;
  BuiltModel model = build(shape, ModelUse::generate);
  set.units = model.graph.units;
  set.settings.at = where.at;
  set.settings.plan.shape = shape;
  set.settings.plan.mesh = where.mesh;
  set.settings.plan.units = zero::plan_units(set.units, {}, where.mesh.ranks(comm::MeshAxis::data));
  for (runtime::UnitPlan& unit : set.settings.plan.units)
    unit.recipe = {.dtype = shape.dtype, .trainable = false};
  step::declare_state(set.persistent, set.units, set.settings);
  Graph graph = step::lower_evaluation(std::move(model.graph), runtime::kNoValue, set.settings);
  runtime::stage_inputs(graph);
  runtime::stage_output(graph, kLogits);
  const ProgramKey key{ProgramKind::generate};
  finish(key, graph, where);
  set.persistent.add_all(graph);
  set.programs[key] =
      runtime::lower(std::move(graph), set.persistent, {name_of(key), machine, where});
  return set;
}

}  // namespace strata::compile
