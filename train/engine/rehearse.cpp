#include "train/engine/rehearse.h"

#include <cstdint>
#include <set>
#include <utility>

#include "comm/shown_collective.h"
#include "runtime/execute/profile.h"
#include "train/engine/kind_times.h"

namespace strata::train {

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

machine::OperationTimes rehearse(Engine& engine, const machine::Machine& machine,
                                 runtime::TraceOf of, runtime::RehearsalLimits limits) {
  KindTimes times;
  for (const runtime::Rehearsal& rehearsal : list_rehearsals(engine.programs(), machine, limits)) {
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
