// Under AddressSanitizer: memory of an arena that no live value owns may not be touched. Elsewhere
// nothing happens.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/executor.h"
#include "runtime/program.h"

namespace strata::runtime {

/// The transient roots of one Program in one run at a time: their bytes are poisoned but from the
/// start of the first instruction that touches them to the end of the last, whichever that is.
class DeadRanges {
 public:
  DeadRanges(const Program& program, const ExecutorParts& parts);
  /// Before the first instruction of a run starts; the run before has ended.
  void begin_run();
  /// Around each instruction, on the thread that runs it.
  void begin(std::int32_t instruction);
  void end(std::int32_t instruction);

 private:
  struct Range {
    std::byte* memory = nullptr;
    std::int64_t bytes = 0;
    std::int32_t users = 0;
  };
  std::vector<Range> ranges_;
  std::vector<std::vector<std::int32_t>> touched_;       ///< ranges, by instruction
  std::unique_ptr<std::atomic<std::int32_t>[]> left_;  ///< users to come, by range
};

}  // namespace strata::runtime
