#include "step/state_table.h"

#include <algorithm>
#include <cstddef>

#include "core/round_up.h"
#include "kernels/ops/step_state.h"
#include "runtime/graph/state_names.h"
#include "step/check_plan.h"
#include "step/optimizer_storage.h"
#include "zero/partition.h"

namespace strata::step {
namespace {

/// A stretch of one kind of state of one unit, in one storage.
struct Kept {
  std::string kind;
  std::string storage;
  runtime::Tier tier;
  DType dtype;
  zero::ElementRange held;           ///< elements of the unit's flat space
  std::int64_t storage_element = 0;  ///< place of the first value in the storage
  std::int64_t elements_per_value = 1;

  /// Returns the first value at or after an element of flat space. A value belongs to the tensor in
  /// which its block begins.
  [[nodiscard]] std::int64_t value_at(std::int64_t element) const {
    return divide_up(element, elements_per_value);
  }
};

/// Returns what a rank keeps of a unit, as far as tiles of the optimizer's state hold any of
/// `wanted`.
std::vector<Kept> kept_of(const runtime::ParameterUnit& unit, const runtime::UnitPlan& plan,
                          const zero::OwnedUnit& owned, const StepSettings& settings,
                          const zero::ElementRange& wanted) {
  const zero::ElementRange whole{0, unit.elements}, shard{owned.owned_begin, owned.owned_end};
  std::vector<Kept> kept{{"parameter", zero::parameter_storage(plan), plan.parameter_tier,
                          plan.recipe.dtype, plan.shard_parameter ? shard : whole}};
  if (!plan.recipe.trainable) return kept;
  std::vector<OptimizerTile> tiles = optimizer_tiles(unit, plan, owned, settings);
  std::erase_if(tiles, [&](const OptimizerTile& tile) {
    return zero::intersect(tile.range, wanted).elements() == 0;
  });
  std::vector<std::vector<StateStorage>> storages;  // by tile, then by kind
  for (const OptimizerTile& tile : tiles)
    storages.push_back(state_storages(unit, plan, owned, tile));
  for (std::size_t kind = 0; kind < optimizer_states(plan.recipe).size(); ++kind)
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      const OptimizerTile& tile = tiles[t];
      const StateStorage& s = storages[t][kind];
      const std::int64_t first = s.offset_bytes / size_of(s.dtype);
      const bool goes_on = !kept.empty() && kept.back().storage == s.name &&
                           kept.back().kind == s.kind && kept.back().held.end == tile.range.begin;
      if (goes_on)
        kept.back().held.end = tile.range.end;
      else
        kept.push_back({s.kind, s.name, s.tier, s.dtype, tile.range, first, s.elements_per_value});
    }
  return kept;
}

struct ScalarField {
  const char* name;
  DType dtype;
  std::size_t offset_bytes;
};

constexpr ScalarField kScalars[] = {
    {"loss_scale", DType::f64, offsetof(kernels::StepState, loss_scale)},
    {"hysteresis", DType::i64, offsetof(kernels::StepState, hysteresis)},
    {"scale_step", DType::i64, offsetof(kernels::StepState, scale_step)},
    {"last_overflow", DType::i64, offsetof(kernels::StepState, last_overflow)},
    {"updates", DType::i64, offsetof(kernels::StepState, updates)},
    {"skipped", DType::i64, offsetof(kernels::StepState, skipped)},
    {"beta1_power", DType::f64, offsetof(kernels::StepState, beta1_power)},
    {"beta2_power", DType::f64, offsetof(kernels::StepState, beta2_power)},
    {"at_floor", DType::i64, offsetof(kernels::StepState, at_floor)},
};
static_assert(std::size(kScalars) * 8 == sizeof(kernels::StepState), "list every field");

class StateLister {
 public:
  StateLister(const std::vector<runtime::ParameterUnit>& units, const StepSettings& settings,
              StateScope scope, std::int64_t updates)
      : units_(units), settings_(settings), scope_(scope), updates_(updates) {}

  std::vector<StateEntry> list() {
    for (std::size_t u = 0; u < units_.size(); ++u) add_unit(units_[u], settings_.plan.units[u]);
    const bool trains = std::ranges::any_of(settings_.plan.units,
                                            [](const auto& unit) { return unit.recipe.trainable; });
    const int rank = comm::rank_of(settings_.plan.mesh, settings_.at);
    if (trains && (lists_all() || rank == 0)) add_scalars();
    return std::move(entries_);
  }

 private:
  [[nodiscard]] bool lists_all() const { return scope_ == StateScope::held; }

  [[nodiscard]] zero::ElementRange shard_of(const runtime::ParameterUnit& unit, int rank) const {
    return zero::shard_of(unit.elements, settings_.plan.data_ranks(), rank);
  }

  void add_unit(const runtime::ParameterUnit& unit, const runtime::UnitPlan& plan) {
    const zero::OwnedUnit owned = zero::owned_unit(unit, plan, settings_);
    const int first = lists_all() ? 0 : settings_.at.along(comm::MeshAxis::data);
    const int end = lists_all() ? settings_.plan.data_ranks() : first + 1;
    const zero::ElementRange wanted{shard_of(unit, first).begin, shard_of(unit, end - 1).end};
    for (const Kept& kept : kept_of(unit, plan, owned, settings_, wanted))
      for (const runtime::Segment& segment : unit.segments)
        for (int shard = first; shard < end; ++shard) {
          comm::MeshPoint owner = settings_.at;
          owner.at[static_cast<std::size_t>(comm::MeshAxis::data)] = shard;
          add_part(segment, kept, zero::intersect(kept.held, shard_of(unit, shard)),
                   comm::rank_of(settings_.plan.mesh, owner));
        }
  }

  void add_part(const runtime::Segment& segment, const Kept& kept, const zero::ElementRange& range,
                int owner) {
    const zero::ElementRange part = zero::intersect(
        {segment.offset_elements, segment.offset_elements + segment.elements}, range);
    const std::int64_t tensor_begin = kept.value_at(segment.offset_elements);
    const std::int64_t tensor_end = kept.value_at(segment.offset_elements + segment.elements);
    const std::int64_t begin = kept.value_at(part.begin), end = kept.value_at(part.end);
    if (begin == end) return;
    StateEntry entry;
    entry.name = segment.name;
    entry.kind = kept.kind;
    entry.storage = kept.storage;
    entry.tier = kept.tier;
    entry.dtype = kept.dtype;
    entry.elements_per_value = kept.elements_per_value;
    entry.shape =
        kept.elements_per_value == 1 ? segment.shape : kernels::Shape{tensor_end - tensor_begin};
    entry.window.first = begin - tensor_begin;
    entry.window.elements = end - begin;
    entry.tensor_begin = tensor_begin;
    entry.storage_element = begin - kept.value_at(kept.held.begin) + kept.storage_element;
    entry.initializer = segment.initializer;
    entry.owner = owner;
    entry.version = updates_;
    entries_.push_back(std::move(entry));
  }

  /// Adds the scalars, which every rank keeps and the first rank saves.
  void add_scalars() {
    for (const ScalarField& field : kScalars) {
      StateEntry entry;
      entry.name = std::string(runtime::kStepState) + "." + field.name;
      entry.kind = "scalar";
      entry.storage = runtime::kStepState;
      entry.dtype = field.dtype;
      entry.window.elements = 1;
      entry.storage_element = static_cast<std::int64_t>(field.offset_bytes) / size_of(field.dtype);
      entry.version = updates_;
      entries_.push_back(std::move(entry));
    }
  }

  const std::vector<runtime::ParameterUnit>& units_;
  const StepSettings& settings_;
  StateScope scope_;
  std::int64_t updates_;
  std::vector<StateEntry> entries_;
};

}  // namespace

std::vector<StateEntry> list_state(const std::vector<runtime::ParameterUnit>& units,
                                   const StepSettings& settings, StateScope scope,
                                   std::int64_t updates) {
  require_none(find_problems(settings.plan, units));
  return StateLister(units, settings, scope, updates).list();
}

}  // namespace strata::step
