#include "train/engine/observed_times.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "machine/demand.h"
#include "plan/foresee.h"
#include "runtime/graph/transfer_node.h"
#include "train/engine/kind_times.h"

namespace strata::train {
namespace {

using runtime::Instruction;
using runtime::Program;

/// An instruction that its predicate forbids ends as soon as it has begun, any other one of those
/// that have a predicate later.
constexpr std::int64_t kLeastWantedNs = 1000;

const Instruction& at(const Program& program, int instruction) {
  return program.instructions[static_cast<std::size_t>(instruction)];
}

bool is_of_interest(const Instruction& in) {
  return !runtime::is_disk_transfer(*in.operation) &&
         !(in.predicate && in.operation->name == "copy");
}

/// Hears a simulation: what each kind takes there, and what it would take alone.
class SimulatedKinds final : public runtime::Observer {
 public:
  explicit SimulatedKinds(const machine::Machine& machine) : machine_(machine) {}
  void begin(const Program&, int) override {}
  void end(const Program&, int) override {}
  void executed(const Program& program, int instruction, std::int64_t begin_ns,
                std::int64_t end_ns) override {
    const Instruction& in = at(program, instruction);
    taken_.add(in, end_ns - begin_ns);
    alone_.add(in, machine::foreseen_ns(machine_, in.demand));
  }
  /// Returns by kind the part of its time in the simulated step that it would take alone.
  [[nodiscard]] std::map<std::uint64_t, double> parts() const {
    std::map<std::uint64_t, double> parts;
    const machine::OperationTimes alone = alone_.mean(machine_);
    const machine::OperationTimes taken = taken_.mean(machine_);
    for (const machine::OperationTime& time : taken.all())
      if (const auto ns = alone.find(time.signature))
        parts[time.signature] =
            std::min(1.0, static_cast<double>(*ns) / static_cast<double>(time.ns));
    return parts;
  }

 private:
  const machine::Machine& machine_;
  KindTimes taken_, alone_;
};

KindTimes recorded_kinds(const runtime::TraceRecorder& recorder,
                         const compile::StepPrograms& programs) {
  std::set<std::string> training;
  for (const auto& [key, program] : programs.programs)
    if (key.is_train()) training.insert(program.name);
  KindTimes kinds;
  for (const runtime::Queue queue : runtime::kAllQueues)
    for (const runtime::TraceRecorder::Event& event : recorder.recorded(queue)) {
      const Instruction& in = at(*event.program, event.instruction);
      const std::int64_t ns = event.end_ns - event.begin_ns;
      if (!is_of_interest(in) || (in.predicate && ns < kLeastWantedNs)) continue;
      if (training.contains(event.program->name)) kinds.add(in, ns);
    }
  return kinds;
}

}  // namespace

machine::OperationTimes observed_times(const runtime::TraceRecorder& recorder,
                                       const compile::StepPrograms& programs,
                                       const machine::Machine& machine) {
  std::vector<machine::OperationTime> times =
      recorded_kinds(recorder, programs).mean(machine).all();
  if (times.empty()) return {};
  SimulatedKinds simulated(machine);
  (void)plan::foresee(programs, machine, {.observers = {&simulated}});
  const std::map<std::uint64_t, double> parts = simulated.parts();
  for (machine::OperationTime& time : times)
    if (const auto part = parts.find(time.signature); part != parts.end())
      time.ns =
          std::max<std::int64_t>(1, std::llround(part->second * static_cast<double>(time.ns)));
  return machine::OperationTimes(std::move(times));
}

}  // namespace strata::train
