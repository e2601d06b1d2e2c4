// Makes AddressSanitizer report accesses to arena memory that no live value owns. Does nothing in
// builds without it.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/execute/executor.h"
#include "runtime/program/program.h"

namespace strata::runtime {

/// Poisons the transient roots of one Program, whose runs follow one another. A root is usable from
/// the start of the first instruction that touches it to the end of the last.
class DeadRanges {
 public:
  DeadRanges(const Program& program, const ExecutorParts& parts);
  ~DeadRanges();
  DeadRanges(const DeadRanges&) = delete;
  DeadRanges& operator=(const DeadRanges&) = delete;
  /// Called around each instruction, on the thread that runs it.
  void begin(std::int32_t instruction);
  void end(std::int32_t instruction);

 private:
  struct Range {
    std::byte* memory = nullptr;
    std::int64_t bytes = 0;
    std::int32_t users = 0;
    std::int32_t left = 0;  ///< users still to come in this run
    bool lives = false;
  };
  std::vector<Range> ranges_;
  std::vector<std::vector<std::int32_t>> touched_;  ///< indices into ranges_, by instruction
  std::mutex mutex_;                                ///< guards what changes in ranges_
};

}  // namespace strata::runtime
