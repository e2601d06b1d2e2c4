#include "train/engine/observed_times.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
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
using Event = runtime::TraceRecorder::Event;

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

/// Knows when each recorded instruction ended.
class RecordedEnds {
 public:
  explicit RecordedEnds(const runtime::TraceRecorder& recorder) {
    for (const runtime::Queue queue : runtime::kAllQueues)
      for (const Event& event : recorder.recorded(queue))
        ends_ns_[{event.run, event.instruction}] = event.end_ns;
  }

  /// Returns when `event`'s queue could have begun it: when the one `before` it on its queue, and
  /// all that it waits for, had ended. So what its thread took to wake is its own time, as it is in
  /// the step. When it began, if that is not known: if nothing of its run came before, since nobody
  /// recorded when the host started the run, and for a collective, which waits for other ranks.
  [[nodiscard]] std::int64_t ready_ns(const Event& event, const Event* before) const {
    const Instruction& in = at(*event.program, event.instruction);
    if (in.collective || in.border_waits != 0) return event.begin_ns;
    std::optional<std::int64_t> ready;
    if (before != nullptr && before->run == event.run) ready = before->end_ns;
    for (const std::int32_t other : in.waits) {
      const auto end = ends_ns_.find({event.run, other});
      if (end == ends_ns_.end()) return event.begin_ns;
      ready = std::max(ready.value_or(end->second), end->second);
    }
    return std::min(ready.value_or(event.begin_ns), event.begin_ns);
  }

 private:
  std::map<std::pair<std::int64_t, std::int32_t>, std::int64_t> ends_ns_;  // by run, instruction
};

KindTimes recorded_kinds(const runtime::TraceRecorder& recorder,
                         const compile::StepPrograms& programs) {
  std::set<std::string> training;
  for (const auto& [key, program] : programs.programs)
    if (key.is_train()) training.insert(program.name);
  const RecordedEnds ends(recorder);
  KindTimes kinds;
  for (const runtime::Queue queue : runtime::kAllQueues) {
    const Event* before = nullptr;
    for (const Event& event : recorder.recorded(queue)) {
      const Instruction& in = at(*event.program, event.instruction);
      const std::int64_t ready_ns = ends.ready_ns(event, std::exchange(before, &event));
      if (!is_of_interest(in)) continue;
      if (in.predicate && event.end_ns - event.begin_ns < kLeastWantedNs) continue;
      if (training.contains(event.program->name)) kinds.add(in, event.end_ns - ready_ns);
    }
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
