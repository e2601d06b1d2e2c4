#include "step/optimizer_storage.h"

#include <algorithm>

#include "runtime/graph/state_names.h"

namespace strata::step {

using runtime::Tier;

std::vector<OptimizerState> optimizer_states(const runtime::UnitRecipe& recipe) {
  const runtime::OptimizerRecipe& optimizer = recipe.optimizer;
  std::vector<OptimizerState> states;
  if (!recipe.trainable) return states;
  if (keeps_master_copy(recipe)) states.push_back({"master", runtime::master_name, DType::f32});
  if (optimizer.master == runtime::MasterFormat::packed)
    states.push_back({"remainder", runtime::remainder_name, DType::i16});
  if (optimizer.moments > 0)
    states.push_back({"moment1", runtime::moment1_name, optimizer.moment_dtype});
  if (optimizer.moments > 1)
    states.push_back({"moment2", runtime::moment2_name, optimizer.moment_dtype});
  if (optimizer.scale_block == 0) return states;
  if (optimizer.moments > 0)
    states.push_back(
        {"moment1_scale", runtime::moment1_scale_name, DType::f32, optimizer.scale_block});
  if (optimizer.moments > 1)
    states.push_back(
        {"moment2_scale", runtime::moment2_scale_name, DType::f32, optimizer.scale_block});
  return states;
}

bool keeps_master_copy(const runtime::UnitRecipe& recipe) {
  return recipe.dtype != DType::f32 && recipe.optimizer.master == runtime::MasterFormat::fp32;
}

std::vector<OptimizerTile> optimizer_tiles(const runtime::ParameterUnit& unit,
                                           const runtime::UnitPlan& plan,
                                           const zero::OwnedUnit& owned,
                                           const StepSettings& settings) {
  const std::int64_t stays = plan.optimizer_device_elements + runtime::kCellElements - 1;
  const std::int64_t border =
      std::min(owned.optimizer_begin + stays / runtime::kCellElements * runtime::kCellElements,
               owned.optimizer_end);
  std::vector<OptimizerTile> tiles;
  const auto add = [&](const zero::ElementRange& part, Tier tier) {
    if (part.elements() > 0) tiles.push_back({part, tier});
  };
  for (const zero::ElementRange& tile :
       zero::cut(unit.elements, settings.plan.limits.tile_elements)) {
    add(zero::intersect(tile, {owned.optimizer_begin, border}), Tier::device);
    const zero::ElementRange leaves = zero::intersect(tile, {border, owned.optimizer_end});
    const bool in_memory =
        plan.optimizer_tier == Tier::disk && leaves.begin - border < plan.optimizer_host_elements;
    add(leaves, in_memory ? Tier::pageable : plan.optimizer_tier);
  }
  return tiles;
}

std::vector<StateStorage> state_storages(const runtime::ParameterUnit& unit,
                                         const runtime::UnitPlan& plan,
                                         const zero::OwnedUnit& owned, const OptimizerTile& tile) {
  const std::vector<OptimizerState> kinds = optimizer_states(plan.recipe);
  const bool is_record = plan.optimizer_tier != Tier::device;
  const std::string record =
      is_record ? runtime::record_name(unit.name, tile.range.begin) : std::string();
  std::vector<StateStorage> storages;
  storages.reserve(kinds.size());
  const std::int64_t held = owned.optimizer_end - owned.optimizer_begin;
  const std::int64_t count = tile.range.elements();
  std::int64_t record_bytes = 0;
  for (const OptimizerState& kind : kinds) {
    const std::int64_t per_value = kind.elements_per_value;
    const kernels::TensorType flat(kind.dtype, kernels::Shape{held / per_value});
    const std::int64_t before = (tile.range.begin - owned.optimizer_begin) / per_value;
    if (!is_record)
      storages.push_back({kind.kind, per_value, kind.storage(unit.name), flat, Tier::device,
                          kind.dtype, before * size_of(kind.dtype)});
    else
      storages.push_back({kind.kind, per_value, record, {}, tile.tier, kind.dtype, record_bytes});
    record_bytes += count / per_value * size_of(kind.dtype);
  }
  if (is_record)
    for (StateStorage& storage : storages)
      storage.storage_type = {DType::u8, kernels::Shape{record_bytes}};
  return storages;
}

}  // namespace strata::step
