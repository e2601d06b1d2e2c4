// The transfers of one disk queue. They start and finish in the queue's order, several under way at
// once, so that the disk does not idle between two instructions. Two that share bytes of the disk
// or of memory, at least one of which writes these, are never under way together.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/program/disk.h"

namespace strata::runtime {

/// A disk instruction with its addresses.
struct DiskTransfer {
  std::int64_t offset = 0;
  std::span<std::byte> memory;
  bool write = false;
  /// True if the value lives within one Program: then all bytes at its place were dead before.
  bool transient = false;
};

/// The time of a transfer, as if the disk served one after another.
struct TransferTimes {
  std::chrono::steady_clock::time_point begin, end;
};

/// The questions that a disk queue's thread asks its executor about the current run.
class TransferQueue {
 public:
  virtual ~TransferQueue() = default;
  /// The first says if all that the instruction waits for has completed; the second waits for it.
  [[nodiscard]] virtual bool is_met(std::int32_t instruction) = 0;
  virtual void wait_until_met(std::int32_t instruction) = 0;
  /// True if nothing new may start.
  [[nodiscard]] virtual bool is_stopped() const = 0;
  /// True unless the predicate is 0.
  [[nodiscard]] virtual bool is_wanted(std::int32_t instruction) const = 0;
  [[nodiscard]] virtual const DiskTransfer& transfer(std::int32_t instruction) const = 0;
  /// The text stays valid during the run.
  [[nodiscard]] virtual std::string_view label(std::int32_t instruction) const = 0;
  virtual void started(std::int32_t instruction) = 0;
  virtual void finished(std::int32_t instruction, const TransferTimes& times) = 0;
  virtual void failed(std::int32_t instruction, const std::exception& error) = 0;
};

/// Runs `instructions` of one queue in one run. Returns when the last has finished, or after the
/// first failure; either way nothing is under way then.
void run_transfers(Disk& disk, const std::vector<std::int32_t>& instructions, TransferQueue& queue);

}  // namespace strata::runtime
