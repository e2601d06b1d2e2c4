#include "plan/resident_records.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "step/optimizer_storage.h"
#include "step/snapshot.h"
#include "zero/partition.h"

namespace strata::plan {
namespace {

/// One window is read, one updated, one written; one more of each keeps the disk busy in between.
constexpr std::int64_t kWindows = 6;

/// Rounds up, since block scales take a fraction of a byte per element.
std::int64_t record_bytes_per_element(const runtime::UnitRecipe& recipe) {
  std::int64_t per_cell = 0;
  for (const step::OptimizerState& state : step::optimizer_states(recipe))
    per_cell += size_of(state.dtype) * (runtime::kCellElements / state.elements_per_value);
  return (per_cell + runtime::kCellElements - 1) / runtime::kCellElements;
}

}  // namespace

void keep_records_in_host_memory(step::StepSettings& settings,
                                 const std::vector<runtime::ParameterUnit>& units,
                                 std::int64_t free_bytes) {
  std::int64_t taken = 0;
  for (std::size_t u = 0; u < units.size(); ++u) {
    runtime::UnitPlan& plan = settings.plan.units[u];
    const std::int64_t each = record_bytes_per_element(plan.recipe);
    if (each == 0 || plan.optimizer_tier != runtime::Tier::disk) continue;
    // The largest part of any rank counts, so that all ranks plan alike.
    const std::int64_t whole = units[u].elements;
    const int owners = plan.shard_optimizer ? settings.plan.data_ranks() : 1;
    const std::int64_t part = zero::largest_shard(whole, owners) - plan.optimizer_device_elements;
    const std::int64_t tile =
        zero::cut(whole, settings.plan.limits.tile_elements).front().elements();
    const std::int64_t fits = std::max<std::int64_t>(0, free_bytes - taken) / each;
    // A tile that begins in the range stays whole; if the range begins inside one, it ends later.
    const bool begins_inside = owners > 1 || plan.optimizer_device_elements % tile != 0;
    const std::int64_t stays =
        fits >= part ? part : fits / tile * tile - (begins_inside ? tile : 0);
    if (stays <= 0) continue;
    plan.optimizer_host_elements = stays;
    taken += stays * each;
  }
}

std::int64_t window_bytes(const step::StepSettings& settings,
                          const std::vector<runtime::ParameterUnit>& units) {
  std::int64_t largest = 0;
  for (std::size_t u = 0; u < units.size(); ++u) {
    const runtime::UnitPlan& plan = settings.plan.units[u];
    if (plan.optimizer_tier == runtime::Tier::disk)
      largest =
          std::max(largest, record_bytes_per_element(plan.recipe) *
                                std::min(units[u].elements, settings.plan.limits.tile_elements));
  }
  return kWindows * largest;
}

runtime::Plan with_resident_records(step::StepSettings settings,
                                    const std::vector<runtime::ParameterUnit>& units,
                                    double share) {
  using runtime::Tier;
  runtime::PersistentLayout others;
  step::declare_state(others, units, settings);
  std::int64_t free_bytes =
      settings.plan.host_bytes - others.bytes(Tier::pinned) - window_bytes(settings, units);
  if (settings.plan.saving == runtime::SaveMemory::snapshot) {
    for (const step::SnapshotPiece& piece : step::list_snapshot(units, settings))
      free_bytes -= piece.end - piece.begin;
    free_bytes /= 2;
  }
  keep_records_in_host_memory(settings, units,
                              std::llround(share * static_cast<double>(free_bytes)));
  return std::move(settings.plan);
}

}  // namespace strata::plan
