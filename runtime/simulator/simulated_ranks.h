// Ranks with a virtual clock: the very Programs that executors run, with nothing executed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/mesh.h"
#include "runtime/execute/executor.h"
#include "runtime/simulator/instruction_work.h"
#include "runtime/simulator/rank_queues.h"

namespace strata::runtime {

class SimulatedWorld;

/// One rank of SimulatedRanks. Its calls that wait advance the clock of all ranks; they throw
/// InternalError where nothing runs and nothing can start. As a rank waits for what its peers send,
/// these must have started their Programs: start on all ranks, then wait.
///
/// Every instruction is executed, whatever its predicate. Observers are told `executed` of each,
/// with its virtual times: recorders are made for TraceOf::device.
class SimulatedRank final : public Executor {
 public:
  SimulatedRank(SimulatedWorld& world, int rank) : world_(world), rank_(rank) {}
  SimulatedRank(const SimulatedRank&) = delete;
  SimulatedRank& operator=(const SimulatedRank&) = delete;

  int load(Program program) override;
  /// The same of a Program that stays where it is for as long as this rank.
  int borrow(const Program& program);
  [[nodiscard]] const Program& program(int handle) const override;
  RunNumber start(int handle, std::int64_t step) override;
  void wait_inputs_read(RunNumber run) override;
  void wait(RunNumber run) override;
  void wait_all() override;

  /// Says whether start() would start a Program now, and the inputs of the last one are read: the
  /// host may fill them for the next.
  [[nodiscard]] bool takes_another() const;
  void add_observer(Observer& observer) { queues_.observers.push_back(&observer); }
  /// Returns when a run that was waited for ended.
  [[nodiscard]] std::int64_t ended_ns(RunNumber run) const { return queues_.ended_ns(run); }

 private:
  friend class SimulatedWorld;
  SimulatedWorld& world_;
  int rank_;
  RankQueues queues_;
  std::vector<std::unique_ptr<Program>> owned_;
  std::vector<std::unique_ptr<SimulatedProgram>> loaded_;
};

/// Owns the clock, which starts at 0, and the ranks of a mesh on hosts of `ranks_per_host` each.
/// Queues, waits and borders are those of the executors; transfers of a disk queue follow one
/// another, as the drive serves them. A collective begins when all ranks along its axes have come
/// to it, and ends for all when the last one has done its part, or (ranks_leave_alone) for each
/// when its own part ends. What runs on one host shares its resources max-min fair. The same calls
/// give the same times, to the nanosecond.
class SimulatedRanks {
 public:
  /// `times`: one for all ranks, or one for each; they stay.
  SimulatedRanks(const comm::Mesh& mesh, int ranks_per_host,
                 std::vector<const InstructionTimes*> times);
  SimulatedRanks(const comm::Mesh& mesh, int ranks_per_host, const InstructionTimes& times)
      : SimulatedRanks(mesh, ranks_per_host, std::vector{&times}) {}
  ~SimulatedRanks();

  [[nodiscard]] int ranks() const;
  [[nodiscard]] SimulatedRank& rank(int rank);
  [[nodiscard]] std::int64_t now_ns() const;
  /// Lets the clock go on until something ends. Throws InternalError where nothing runs.
  void advance();

 private:
  std::unique_ptr<SimulatedWorld> world_;
};

}  // namespace strata::runtime
