// What a run moves between tiers and holds there, beside what its Programs say: collected while it
// runs for the last line of the metrics file (train/run/transfer_report.h).
#pragma once

#include <string>

#include "runtime/execute/transfer_tally.h"
#include "runtime/program/disk.h"
#include "train/engine/engine.h"
#include "train/run/run_disk.h"

namespace strata::train {

class TransferLedger {
 public:
  /// For ExecutorParts::observers; lives as long as the engine.
  [[nodiscard]] runtime::Observer& observer() { return tally_; }

  /// What `body` reads from the disk and writes there is of no Program.
  template <typename Body>
  void beside_programs(const Engine& engine, const Body& body) {
    const runtime::DiskCounters before = engine.disk_counters();
    body();
    const runtime::DiskCounters after = engine.disk_counters();
    beside_.read_bytes += after.read_bytes - before.read_bytes;
    beside_.written_bytes += after.written_bytes - before.written_bytes;
  }

  /// This rank's JSON object. Drained.
  [[nodiscard]] std::string describe(const Engine& engine, const RunDisk& disk) const;

 private:
  runtime::TransferTally tally_;
  runtime::DiskCounters beside_;
};

}  // namespace strata::train
