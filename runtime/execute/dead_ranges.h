// Under AddressSanitizer: memory of an arena that no live value owns may not be touched. Elsewhere
// nothing happens.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "runtime/execute/executor.h"
#include "runtime/program/program.h"

namespace strata::runtime {

/// Poisons the transient roots of one Program, whose runs follow one another, except from the start
/// of the first instruction that touches them to the end of the last to finish.
class DeadRanges {
 public:
  DeadRanges(const Program& program, const ExecutorParts& parts);
  ~DeadRanges();
  DeadRanges(const DeadRanges&) = delete;
  DeadRanges& operator=(const DeadRanges&) = delete;
  /// Around each instruction, on the thread that runs it.
  void begin(std::int32_t instruction);
  void end(std::int32_t instruction);

 private:
  struct Range {
    std::byte* memory = nullptr;
    std::int64_t bytes = 0;
    std::int32_t users = 0;
    std::int32_t left = 0;  ///< users to come in this run
    bool lives = false;
  };
  std::vector<Range> ranges_;
  std::vector<std::vector<std::int32_t>> touched_;  ///< ranges, by instruction
  std::mutex mutex_;                                ///< of what changes in ranges_
};

}  // namespace strata::runtime
