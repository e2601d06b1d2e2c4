// Collects during a run what it moves between tiers and holds there, and what its Programs say of
// it, for the last line of the metrics file (train/run/transfer_report.h).
#pragma once

#include <string>

#include "runtime/execute/transfer_tally.h"
#include "runtime/program/disk.h"
#include "train/engine/engine.h"
#include "train/run/run_disk.h"

namespace strata::train {

class TransferLedger {
 public:
  /// An observer for ExecutorParts::observers; must live as long as the engine.
  [[nodiscard]] runtime::Observer& observer() { return tally_; }

  /// Runs `body`, whose disk transfers belong to no Program and are not counted.
  template <typename Body>
  void beside_programs(const Engine& engine, const Body& body) {
    const runtime::DiskCounters before = engine.disk_counters();
    body();
    const runtime::DiskCounters after = engine.disk_counters();
    beside_.read_bytes += after.read_bytes - before.read_bytes;
    beside_.written_bytes += after.written_bytes - before.written_bytes;
  }

  /// Returns this rank's JSON object. The engine must be drained.
  [[nodiscard]] std::string describe(const Engine& engine, const RunDisk& disk) const;

 private:
  runtime::TransferTally tally_;
  runtime::DiskCounters beside_;
};

}  // namespace strata::train
