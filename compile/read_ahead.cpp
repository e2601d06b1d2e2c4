#include "compile/read_ahead.h"

#include "runtime/program/arena_alignment.h"
#include "runtime/program/program.h"
#include "step/optimizer_storage.h"

namespace strata::compile {

std::vector<offload::ReadAhead> records_read_ahead(const step::StepSettings& settings,
                                                   const std::vector<runtime::ParameterUnit>& units,
                                                   std::int64_t window_bytes) {
  std::vector<offload::ReadAhead> records;
  std::int64_t taken = 0;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const runtime::UnitPlan& plan = settings.plan.units[u];
    if (step::optimizer_states(plan.recipe).empty()) continue;
    const zero::OwnedUnit owned = zero::owned_unit(units[u], plan, settings);
    for (const step::OptimizerTile& tile : step::optimizer_tiles(units[u], plan, owned, settings)) {
      if (tile.tier != runtime::Tier::disk) continue;
      const step::StateStorage record = step::state_storages(units[u], plan, owned, tile).front();
      const std::int64_t room =
          runtime::room_of(record.storage_type.span_bytes(), runtime::Tier::pinned);
      if (taken + room > window_bytes) return records;
      records.push_back({record.name, record.storage_type, taken, zero::held_by_owners(plan)});
      taken += room;
    }
  }
  return records;
}

}  // namespace strata::compile
