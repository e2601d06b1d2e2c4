#include "plan/disk_time.h"

#include "runtime/program/persistent_layout.h"
#include "step/snapshot.h"
#include "step/state_table.h"

namespace strata::plan {
namespace {

double disk_seconds(const machine::Machine& machine, std::int64_t read_bytes,
                    std::int64_t written_bytes) {
  const auto ns = [&](machine::Resource resource, std::int64_t bytes) {
    return machine::foreseen_ns(machine, {.resource = resource, .moved_bytes = bytes});
  };
  return 1e-9 * static_cast<double>(ns(machine::Resource::disk_read, read_bytes) +
                                    ns(machine::Resource::disk_write, written_bytes));
}

}  // namespace

double record_seconds(const step::StepSettings& settings,
                      const std::vector<runtime::ParameterUnit>& units,
                      const machine::Machine& machine) {
  runtime::PersistentLayout state;
  step::declare_state(state, units, settings);
  std::int64_t bytes = 0;
  for (const runtime::PersistentValue& value : state.values())
    if (value.tier == runtime::Tier::disk && value.role == runtime::Role::optimizer)
      bytes += value.type.span_bytes();
  return disk_seconds(machine, bytes, bytes);
}

double save_seconds(const step::StepSettings& settings,
                    const std::vector<runtime::ParameterUnit>& units,
                    const machine::Machine& machine) {
  std::int64_t read = 0, written = 0;
  if (settings.plan.saving == runtime::SaveMemory::writing)
    for (const step::StateEntry& entry :
         step::list_state(units, settings, step::StateScope::saved, 0)) {
      const std::int64_t bytes = entry.window.elements * size_of(entry.dtype);
      written += bytes;
      if (entry.tier == runtime::Tier::disk) read += bytes;
    }
  if (settings.plan.saving == runtime::SaveMemory::windows)
    for (const step::SnapshotPiece& piece :
         step::list_snapshot(units, settings, step::SnapshotCopies::windows))
      written += piece.end - piece.begin;
  return disk_seconds(machine, read, written);
}

}  // namespace strata::plan
