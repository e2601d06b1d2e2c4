#include "train/engine/memory_report.h"

#include <cstdio>

namespace strata::train {

MemoryBytes count_memory(const ProgramSet& programs) {
  MemoryBytes memory;
  for (const runtime::PersistentValue& value : programs.persistent.values()) {
    const std::int64_t bytes = value.type.span_bytes();
    if (value.tier != runtime::Tier::device) continue;
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
      default:
        memory.inputs += bytes;
        break;
    }
  }
  memory.pinned = programs.arena_bytes(runtime::Tier::pinned);
  memory.transient =
      programs.arena_bytes(runtime::Tier::device) - memory.persistent() - memory.inputs;
  return memory;
}

std::string format_bytes(double bytes) {
  const char* unit = "bytes";
  int digits = 0;
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = larger;
    digits = 2;
  }
  char text[48];
  std::snprintf(text, sizeof text, "%.*f %s", digits, bytes, unit);
  return text;
}

std::string format_memory(const MemoryBytes& memory) {
  std::string text;
  const auto line = [&](const char* purpose, std::int64_t bytes) {
    char row[96];
    std::snprintf(row, sizeof row, "  %-42s %12s\n", purpose,
                  format_bytes(static_cast<double>(bytes)).c_str());
    text += row;
  };
  line("parameters", memory.parameters);
  line("gradients", memory.gradients);
  line("optimizer state", memory.optimizer);
  line("inputs and control", memory.inputs);
  line("transient (activations, gathers, scratch)", memory.transient);
  line("device arena", memory.arena());
  line("pinned arena (inputs and metrics)", memory.pinned);
  return text;
}

}  // namespace strata::train
