#include "train/engine/rehearse.h"

#include <cstdint>
#include <set>
#include <utility>

#include "comm/shown_collective.h"
#include "core/clock.h"
#include "runtime/execute/profile.h"
#include "train/engine/kind_times.h"

namespace strata::train {
namespace {

/// Power is held to its limit over some tenths of a second.
constexpr double kWarmUpSeconds = 1;
constexpr int kWarmUpTurns = 5;

/// Each rank warms its own device up, for as long as it takes.
void warm_up(Engine& engine, const machine::Machine& machine, runtime::TraceOf of) {
  const std::vector<runtime::Rehearsal> list = list_warm_ups(engine.programs(), machine);
  const std::int64_t end = monotonic_ns() + static_cast<std::int64_t>(1e9 * kWarmUpSeconds);
  while (!list.empty())
    for (const runtime::Rehearsal& rehearsal : list) {
      runtime::ProfileRecorder ignored(of, 0);
      engine.beat()();
      engine.rehearse(rehearsal, ignored);
      if (monotonic_ns() >= end) return;
    }
}

}  // namespace

std::vector<runtime::Rehearsal> list_rehearsals(const compile::StepPrograms& programs,
                                                const machine::Machine& machine,
                                                runtime::RehearsalLimits limits) {
  std::set<std::uint64_t> measured;
  for (const machine::OperationTime& time : machine.times.all()) measured.insert(time.signature);
  std::vector<runtime::Rehearsal> list;
  for (const int repeats : {1, limits.repeats - 1}) {
    limits.repeats = repeats;
    std::set<std::uint64_t> known = measured;
    for (const auto& [key, program] : programs.programs) {
      if (!key.is_train()) continue;
      runtime::Rehearsal rehearsal = make_rehearsal(program, machine, limits, known);
      if (!rehearsal.program.instructions.empty()) list.push_back(std::move(rehearsal));
    }
  }
  return list;
}

std::vector<runtime::Rehearsal> list_warm_ups(const compile::StepPrograms& programs,
                                              machine::Machine machine) {
  machine.times = {};
  return list_rehearsals(programs, machine,
                         {.repeats = kWarmUpTurns, .seconds = kWarmUpSeconds, .collectives = 0});
}

machine::OperationTimes rehearse(Engine& engine, const machine::Machine& machine,
                                 runtime::TraceOf of, runtime::RehearsalLimits limits) {
  KindTimes times;
  const std::vector<runtime::Rehearsal> list = list_rehearsals(engine.programs(), machine, limits);
  if (!list.empty() && !engine.arena(runtime::Tier::device).on_host()) warm_up(engine, machine, of);
  for (const runtime::Rehearsal& rehearsal : list) {
    runtime::ProfileRecorder recorder(of, 0);
    const comm::ShownCollective shown(engine.communicator(), "rehearse instructions");
    engine.beat()();
    engine.rehearse(rehearsal, recorder);
    for (const runtime::InstructionTime& time : recorder.instructions())
      times.add(rehearsal.program.instructions[static_cast<std::size_t>(time.instruction)],
                time.ns);
  }
  return times.typical(machine);
}

}  // namespace strata::train
