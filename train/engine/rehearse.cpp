#include "train/engine/rehearse.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "runtime/execute/profile.h"

namespace strata::train {
namespace {

/// Returns one kind's time, of the times of its runs.
std::int64_t typical(std::vector<std::int64_t> ns, bool of_collective) {
  std::ranges::sort(ns);
  return std::max<std::int64_t>(1, of_collective ? ns.front() : ns[ns.size() / 2]);
}

/// `recorder` saw one run of `program`, each instruction of which is a run of its kind.
std::vector<machine::OperationTime> times_of(const runtime::Program& program,
                                             const runtime::ProfileRecorder& recorder,
                                             const machine::Machine& machine) {
  std::map<std::uint64_t, std::vector<std::int64_t>> runs;
  std::map<std::uint64_t, const runtime::Instruction*> kinds;
  for (const runtime::InstructionTime& time : recorder.instructions()) {
    const auto& in = program.instructions[static_cast<std::size_t>(time.instruction)];
    runs[in.demand.signature].push_back(time.ns);
    kinds.try_emplace(in.demand.signature, &in);
  }
  std::vector<machine::OperationTime> times;
  for (auto& [signature, in] : kinds)
    times.push_back({signature, std::string(in->demand.operation), in->demand.resource,
                     in->demand.type, typical(runs.at(signature), in->collective.has_value()),
                     machine::guessed_ns(machine, in->demand)});
  return times;
}

}  // namespace

machine::OperationTimes rehearse(Engine& engine, const machine::Machine& machine,
                                 runtime::TraceOf of, runtime::RehearsalLimits limits) {
  std::set<std::uint64_t> known;
  for (const machine::OperationTime& time : machine.times.all()) known.insert(time.signature);
  machine::OperationTimes times;
  for (const auto& [key, program] : engine.programs().programs) {
    if (!key.is_train()) continue;
    const runtime::Rehearsal rehearsal = make_rehearsal(program, machine, limits, known);
    if (rehearsal.program.instructions.empty()) continue;
    runtime::ProfileRecorder recorder(of, 0);
    engine.rehearse(rehearsal, recorder);
    times.merge(machine::OperationTimes(times_of(rehearsal.program, recorder, machine)));
  }
  return times;
}

}  // namespace strata::train
