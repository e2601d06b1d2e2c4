// Counts what a whole run moves between tiers: what its Programs say, and what was copied.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/execute/observer.h"

namespace strata::runtime {

/// Holds bytes by queue.
using QueueBytes = std::array<std::int64_t, kQueues>;

/// A Program and how often it was started.
struct ProgramTally {
  std::string program;
  std::int64_t runs = 0;
  QueueBytes always{};       ///< bytes of one run
  QueueBytes conditional{};  ///< bytes of one run that depend on a predicate
};

/// Returns the bytes that an instruction moves between tiers, in whole sectors for a disk; 0: none.
std::int64_t bytes_between_tiers(const Instruction& instruction);

/// Results may be read only when the executor is idle.
class TransferTally final : public Observer {
 public:
  void begin_program(const Program& program, std::int64_t step) override;
  void begin(const Program&, int) override {}
  void end(const Program&, int) override {}
  void copied(const Program& program, int instruction) override;

  [[nodiscard]] const std::vector<ProgramTally>& programs() const { return programs_; }
  /// Returns the bytes that the host itself copied (Observer::copied).
  [[nodiscard]] QueueBytes copied_bytes() const;

 private:
  std::vector<ProgramTally> programs_;
  std::array<std::atomic<std::int64_t>, kQueues> copied_{};
};

}  // namespace strata::runtime
