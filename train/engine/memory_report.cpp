#include "train/engine/memory_report.h"

#include <cstdio>
#include <vector>

#include "core/format_bytes.h"

namespace strata::train {

namespace {

using runtime::Tier;

TierMemory count_tier(const compile::StepPrograms& programs, Tier tier) {
  TierMemory memory;
  for (const runtime::PersistentValue& value : programs.persistent.values()) {
    if (value.tier != tier) continue;
    const std::int64_t bytes = value.type.span_bytes();
    // Snapshot values with windows only pass through the disk tier (compile::StepPrograms::outlet).
    if (tier == Tier::disk && value.role == runtime::Role::snapshot) continue;
    switch (value.role) {
      case runtime::Role::parameter:
        memory.parameters += bytes;
        break;
      case runtime::Role::gradient:
        memory.gradients += bytes;
        break;
      case runtime::Role::optimizer:
        memory.optimizer += bytes;
        break;
      case runtime::Role::snapshot:
        memory.snapshot += bytes;
        break;
      default:
        memory.inputs += bytes;
        break;
    }
  }
  memory.transient =
      programs.arena_bytes(tier) - memory.persistent() - memory.inputs - memory.snapshot;
  return memory;
}

}  // namespace

MemoryBytes count_memory(const compile::StepPrograms& programs) {
  MemoryBytes memory;
  static_cast<TierMemory&>(memory) = count_tier(programs, Tier::device);
  memory.pinned = count_tier(programs, Tier::pinned);
  memory.pageable = count_tier(programs, Tier::pageable);
  memory.disk = count_tier(programs, Tier::disk);
  memory.disk.snapshot = programs.second_places_bytes();
  memory.disk.transient -= programs.outlet().bytes();
  return memory;
}

std::string format_memory(const MemoryBytes& memory) {
  struct Column {
    const char* title;
    const TierMemory* tier;
  };
  std::vector<Column> columns{{"device", &memory}, {"pinned", &memory.pinned}};
  if (memory.pageable.arena() > 0) columns.push_back({"pageable", &memory.pageable});
  if (memory.disk.arena() > 0) columns.push_back({"disk", &memory.disk});
  std::string text;
  const auto line = [&](const char* purpose, const auto& cell) {
    char field[64];
    std::snprintf(field, sizeof field, "  %-43s", purpose);
    text += field;
    for (const Column& column : columns) {
      std::snprintf(field, sizeof field, " %12s", cell(column).c_str());
      text += field;
    }
    text += "\n";
  };
  const auto bytes = [&](const char* purpose, const auto& part) {
    line(purpose, [&](const Column& column) {
      const std::int64_t count = part(*column.tier);
      return count == 0 ? std::string("-") : format_bytes(count);
    });
  };
  line("", [](const Column& column) { return std::string(column.title); });
  bytes("parameters", [](const TierMemory& tier) { return tier.parameters; });
  bytes("gradients", [](const TierMemory& tier) { return tier.gradients; });
  bytes("optimizer state", [](const TierMemory& tier) { return tier.optimizer; });
  bytes("inputs and control", [](const TierMemory& tier) { return tier.inputs; });
  if (memory.pinned.snapshot + memory.pageable.snapshot + memory.disk.snapshot > 0)
    bytes("snapshot for checkpoints", [](const TierMemory& tier) { return tier.snapshot; });
  bytes("transient (activations, transfers, scratch)",
        [](const TierMemory& tier) { return tier.transient; });
  bytes("arena", [](const TierMemory& tier) { return tier.arena(); });
  return text;
}

}  // namespace strata::train
