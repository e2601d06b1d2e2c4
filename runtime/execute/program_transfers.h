// One disk queue of one run of a loaded Program: the part that all executors share.
#pragma once

#include <vector>

#include "runtime/execute/bound_instruction.h"
#include "runtime/execute/disk_transfers.h"
#include "runtime/execute/observer.h"
#include "runtime/execute/queue_progress.h"

namespace strata::runtime {

/// All arguments outlive it. Executors add what they know of waits, poison and errors.
class ProgramTransfers : public TransferQueue {
 public:
  ProgramTransfers(const Program& program, const std::vector<BoundInstruction>& bound,
                   const std::vector<Observer*>& observers, QueueProgress& progress)
      : program_(program), bound_(bound), observers_(observers), progress_(progress) {}

  [[nodiscard]] bool is_wanted(std::int32_t i) const override { return bound(i).is_wanted(); }
  [[nodiscard]] const DiskTransfer& transfer(std::int32_t i) const override {
    return bound(i).disk;
  }
  [[nodiscard]] std::string_view label(std::int32_t i) const override {
    return instruction(i).label;
  }
  void started(std::int32_t i) override {
    for (Observer* observer : observers_) observer->begin(program_, i);
  }
  void finished(std::int32_t i, const TransferTimes& times) override {
    for (Observer* observer : observers_) {
      observer->end(program_, i);
      observer->executed(program_, i, nanoseconds(times.begin), nanoseconds(times.end));
    }
    progress_.advance(i);
  }

 protected:
  [[nodiscard]] const Instruction& instruction(std::int32_t i) const {
    return program_.instructions[static_cast<std::size_t>(i)];
  }

 private:
  static std::int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
    return std::chrono::nanoseconds(time.time_since_epoch()).count();
  }
  [[nodiscard]] const BoundInstruction& bound(std::int32_t i) const {
    return bound_[static_cast<std::size_t>(i)];
  }

  const Program& program_;
  const std::vector<BoundInstruction>& bound_;
  const std::vector<Observer*>& observers_;
  QueueProgress& progress_;
};

}  // namespace strata::runtime
