#include "step/optimizer_storage.h"

#include <algorithm>

#include "runtime/graph/state_names.h"

namespace strata::step {

using runtime::Tier;

std::vector<OptimizerTile> optimizer_tiles(const runtime::ParameterUnit& unit,
                                           const runtime::UnitPlan& plan,
                                           const zero::OwnedUnit& owned,
                                           const StepSettings& settings) {
  const std::int64_t stays = plan.optimizer_device_elements + runtime::kCellElements - 1;
  const std::int64_t border =
      std::min(owned.optimizer_begin + stays / runtime::kCellElements * runtime::kCellElements,
               owned.optimizer_end);
  std::vector<OptimizerTile> tiles;
  const auto add = [&](const zero::Extent& part, Tier tier) {
    if (part.elements() > 0) tiles.push_back({part, tier});
  };
  for (const zero::Extent& tile : zero::cut(unit.elements, settings.plan.limits.tile_elements)) {
    add(zero::intersect(tile, {owned.optimizer_begin, border}), Tier::device);
    const zero::Extent leaves = zero::intersect(tile, {border, owned.optimizer_end});
    const bool in_memory =
        plan.optimizer_tier == Tier::disk && leaves.begin - border < plan.optimizer_host_elements;
    add(leaves, in_memory ? Tier::pageable : plan.optimizer_tier);
  }
  return tiles;
}

std::vector<StateStorage> state_storages(const runtime::ParameterUnit& unit,
                                         const runtime::UnitPlan& plan,
                                         const zero::OwnedUnit& owned, const OptimizerTile& tile) {
  std::vector<StateStorage> storages;
  const std::vector<OptimizerState> kinds = optimizer_states(plan.recipe);
  const std::int64_t held = owned.optimizer_end - owned.optimizer_begin;
  const std::int64_t count = tile.extent.elements();
  std::int64_t record_bytes = 0;
  for (const OptimizerState& kind : kinds) {
    const std::int64_t per_value = kind.elements_per_value;
    const kernels::TensorType flat(kind.dtype, kernels::Shape{held / per_value});
    const std::int64_t before = (tile.extent.begin - owned.optimizer_begin) / per_value;
    if (plan.optimizer_tier == Tier::device)
      storages.push_back({kind.kind, per_value, kind.storage(unit.name), flat, Tier::device,
                          kind.dtype, before * size_of(kind.dtype)});
    else
      storages.push_back({kind.kind,
                          per_value,
                          runtime::record_name(unit.name, tile.extent.begin),
                          {},
                          tile.tier,
                          kind.dtype,
                          record_bytes});
    record_bytes += count / per_value * size_of(kind.dtype);
  }
  if (plan.optimizer_tier != Tier::device)
    for (StateStorage& storage : storages)
      storage.storage_type = {DType::u8, kernels::Shape{record_bytes}};
  return storages;
}

}  // namespace strata::step
