#include "train/engine/rehearse.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "core/clock.h"

namespace strata::train {
namespace {

/// Keeps how long each instruction of one Program took. Each queue's thread writes its own.
class RehearsalClock final : public runtime::Observer {
 public:
  RehearsalClock(runtime::TraceOf of, std::size_t instructions) : of_(of), ns_(instructions) {}

  void begin(const runtime::Program& program, int instruction) override {
    begun_ns_[queue_of(program, instruction)] = monotonic_ns();
  }
  void end(const runtime::Program& program, int instruction) override {
    if (of_ == runtime::TraceOf::device) return;
    ns_[static_cast<std::size_t>(instruction)] =
        monotonic_ns() - begun_ns_[queue_of(program, instruction)];
  }
  [[nodiscard]] bool wants_device_times() const override { return of_ == runtime::TraceOf::device; }
  void executed(const runtime::Program&, int instruction, std::int64_t begin_ns,
                std::int64_t end_ns) override {
    ns_[static_cast<std::size_t>(instruction)] = end_ns - begin_ns;
  }

  [[nodiscard]] std::int64_t ns(std::size_t instruction) const { return ns_[instruction]; }

 private:
  static std::size_t queue_of(const runtime::Program& program, int instruction) {
    return static_cast<std::size_t>(
        program.instructions[static_cast<std::size_t>(instruction)].queue);
  }

  runtime::TraceOf of_;
  std::vector<std::int64_t> ns_;
  std::array<std::int64_t, runtime::kQueues> begun_ns_{};
};

/// One kind's time, of all its runs.
std::int64_t typical(std::vector<std::int64_t> ns, bool of_collective) {
  std::ranges::sort(ns);
  return std::max<std::int64_t>(1, of_collective ? ns.front() : ns[ns.size() / 2]);
}

std::vector<machine::OperationTime> times_of(const runtime::Program& program,
                                             const RehearsalClock& clock,
                                             const machine::Machine& machine) {
  std::map<std::uint64_t, std::vector<std::int64_t>> runs;
  std::map<std::uint64_t, const runtime::Instruction*> kinds;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const runtime::Instruction& in = program.instructions[i];
    runs[in.demand.signature].push_back(clock.ns(i));
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
    RehearsalClock clock(of, rehearsal.program.instructions.size());
    engine.rehearse(rehearsal, clock);
    times.merge(machine::OperationTimes(times_of(rehearsal.program, clock, machine)));
  }
  return times;
}

}  // namespace strata::train
