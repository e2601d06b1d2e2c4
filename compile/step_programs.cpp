#include "compile/step_programs.h"

#include <algorithm>

#include "runtime/program/arena_alignment.h"

namespace strata::compile {

std::string_view name_of(ProgramKind kind) {
  constexpr std::string_view kNames[] = {"train",    "drain",    "read_ahead",
                                         "snapshot", "evaluate", "generate"};
  return kNames[static_cast<int>(kind)];
}

std::string name_of(const ProgramKey& key) {
  std::string name(name_of(key.kind));
  if (key.kind == ProgramKind::train) name += "." + zero::name_of(key.micro_step);
  if (key.kind == ProgramKind::snapshot) name = "train." + name;
  if (key.shorter_sequence > 0) name += "@" + std::to_string(key.shorter_sequence);
  return name;
}

const runtime::Program* StepPrograms::find(ProgramKind kind) const {
  const auto found =
      std::ranges::find_if(programs, [&](const auto& entry) { return entry.first.kind == kind; });
  return found == programs.end() ? nullptr : &found->second;
}

std::int64_t StepPrograms::arena_bytes(runtime::Tier tier) const {
  std::int64_t bytes = 0;
  for (const auto& [key, program] : programs)
    bytes = std::max(bytes, program.arena_bytes[static_cast<std::size_t>(tier)]);
  return bytes;
}

std::int64_t StepPrograms::second_places_bytes() const {
  std::int64_t bytes = 0;
  for (const std::string& name : snapshot_records)
    bytes += runtime::room_of(persistent.find(name).type.span_bytes(), runtime::Tier::disk);
  return bytes;
}

runtime::Outlet StepPrograms::outlet() const {
  // The copies were declared one after another, so the first and the last one bound them.
  if (snapshot_pieces.empty() || snapshot_pieces.front().tier != runtime::Tier::disk) return {};
  const runtime::PersistentValue& last = persistent.find(snapshot_pieces.back().copy);
  return {persistent.find(snapshot_pieces.front().copy).offset_bytes,
          last.offset_bytes + runtime::room_of(last.type.span_bytes(), runtime::Tier::disk)};
}

std::int64_t StepPrograms::scheduled_ns() const {
  std::int64_t ns = 0;
  for (const auto& [key, program] : programs)
    if (key.is_train() && program.is_scheduled)
      ns += zero::runs_per_step(settings.plan, key.micro_step) * program.foreseen_ns;
  return ns;
}

}  // namespace strata::compile
