#include "zero/state_table.h"

#include "runtime/state_names.h"
#include "zero/partition.h"

namespace strata::zero {
namespace {

/// One kind of state of one unit: where it is kept and which flat range of it.
struct Kept {
  std::string kind;
  std::string storage;
  DType dtype;
  Extent held;
};

std::vector<Kept> kept_of(const runtime::ParameterUnit& unit, const runtime::UnitPlan& plan,
                          const OwnedUnit& owned, const StepSettings& settings) {
  const Extent whole{0, unit.elements}, shard{owned.owned_begin, owned.owned_end};
  const Extent optimizer{owned.optimizer_begin, owned.optimizer_end};
  std::vector<Kept> kept;
  if (plan.shard_parameter)
    kept.push_back({"parameter", runtime::parameter_shard_name(unit.name), settings.dtype, shard});
  else
    kept.push_back({"parameter", runtime::parameter_name(unit.name), settings.dtype, whole});
  if (!unit.trainable) return kept;
  if (settings.dtype != DType::f32)
    kept.push_back({"master", runtime::master_name(unit.name), DType::f32, optimizer});
  if (settings.optimizer.moments > 0)
    kept.push_back({"moment1", runtime::moment1_name(unit.name), DType::f32, optimizer});
  if (settings.optimizer.moments > 1)
    kept.push_back({"moment2", runtime::moment2_name(unit.name), DType::f32, optimizer});
  return kept;
}

}  // namespace

std::vector<StateEntry> list_state(const std::vector<runtime::ParameterUnit>& units,
                                   const StepSettings& settings, StateScope scope) {
  std::vector<StateEntry> entries;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const OwnedUnit owned =
        owned_unit(units[u], settings.plan.units[u], settings.plan.world, settings.rank);
    for (const Kept& kept : kept_of(units[u], settings.plan.units[u], owned, settings)) {
      const Extent range = scope == StateScope::held
                               ? kept.held
                               : intersect(kept.held, {owned.owned_begin, owned.owned_end});
      for (const runtime::Segment& segment : units[u].segments) {
        const Extent part =
            intersect({segment.offset_elements, segment.offset_elements + segment.elements}, range);
        if (part.elements() == 0) continue;
        entries.push_back({segment.name, kept.kind, kept.storage, runtime::Tier::device, kept.dtype,
                           segment.shape, part.begin - segment.offset_elements, part.elements(),
                           part.begin, part.begin - kept.held.begin, segment.initializer});
      }
    }
  }
  return entries;
}

}  // namespace strata::zero
