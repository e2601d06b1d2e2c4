#include "train/run/transfer_ledger.h"

#include <vector>

#include "train/run/transfer_report.h"

namespace strata::train {
namespace {

std::vector<TierUse> uses_of_tiers(const Engine& engine, const RunDisk& disk) {
  std::vector<TierUse> uses;
  for (int t = 0; t < runtime::kTiers; ++t) {
    const auto tier = static_cast<runtime::Tier>(t);
    const bool on_disk = tier == runtime::Tier::disk;
    const std::int64_t planned = engine.programs().taken_bytes(tier);
    if (planned == 0) continue;
    uses.push_back(
        {tier, planned, on_disk ? disk.reserved_bytes() : resident_bytes(engine.arena(tier))});
  }
  return uses;
}

}  // namespace

std::string TransferLedger::describe(const Engine& engine, const RunDisk& disk) const {
  MovedBytes moved;
  if (engine.arena().on_host()) moved.copied = tally_.copied_bytes();
  const runtime::DiskCounters all = engine.disk_counters();
  moved.disk = {all.read_bytes - beside_.read_bytes, all.written_bytes - beside_.written_bytes};
  return describe_transfers(tally_.programs(), moved, uses_of_tiers(engine, disk));
}

}  // namespace strata::train
