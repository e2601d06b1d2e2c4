// The times of instructions as a run measured them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/simulator/instruction_work.h"
#include "runtime/simulator/run_recorder.h"

namespace strata::runtime {

/// No instruction has shares: each was measured beside the others.
class MeasuredTimes final : public InstructionTimes {
 public:
  /// `otherwise`: the times of Programs that were not measured; it stays. None: there are none.
  explicit MeasuredTimes(const InstructionTimes* otherwise = nullptr) : otherwise_(otherwise) {}

  void set(const Program& program, int instruction, std::int64_t ns);
  /// Throws InvalidArgument for an instruction that was not measured.
  [[nodiscard]] InstructionWork work_of(const Program& program, int instruction) const override;
  [[nodiscard]] bool ranks_leave_alone() const override { return true; }

 private:
  const InstructionTimes* otherwise_;
  std::map<std::string, std::vector<std::int64_t>> ns_;  // of a Program by its name; -1: none
};

/// The runs that one rank recorded.
using Recording = std::vector<RecordedRun>;

/// When the time of an instruction begins.
enum class CountedFrom {
  /// When it could have begun: its run could be started, its queue was free, all that it waits for
  /// had ended, and to a collective all ranks had come. So the time to wake a thread counts as its
  /// own, and what the host took to start a run as that of the instructions that waited for it.
  ready,
  begin,  ///< when its queue began it, or the last rank a collective
};

/// Returns when the first rank started its first run; recordings have one clock.
std::int64_t first_start_ns(const std::vector<Recording>& ranks);

/// Returns how long each instruction of each run took on each rank. Throws InvalidArgument where
/// the ranks did not meet equally often.
std::vector<std::vector<std::vector<std::int64_t>>> durations(
    const std::vector<Recording>& ranks, CountedFrom from = CountedFrom::ready);

/// Returns per rank the mean over all runs of steps from `first_step` on. `otherwise`: as
/// MeasuredTimes has it.
std::vector<MeasuredTimes> mean_times(const std::vector<Recording>& ranks, std::int64_t first_step,
                                      const InstructionTimes* otherwise = nullptr);

}  // namespace strata::runtime
