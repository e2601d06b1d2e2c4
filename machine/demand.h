// The demand of an instruction on a machine, and the time that it takes: the only place that
// computes times. Schedules, bounds and foreseen steps read them.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/dtype.h"
#include "machine/machine.h"
#include "machine/resource.h"

namespace strata::machine {

struct Demand {
  Resource resource = Resource::device;
  DType type = DType::f32;  ///< type of the operands of a product
  double flops = 0;
  double bytes = 0;              ///< bytes of all operands, each counted once
  std::int64_t moved_bytes = 0;  ///< bytes over link or disk; to peers: sent by this rank
  int ranks = 1;                 ///< of a collective: ranks that take part
  /// Name and kind of the instruction, by which its measured time is found (OperationTimes);
  /// empty and 0: it has none.
  std::string_view operation = {};
  std::uint64_t signature = 0;
};

/// Returns the time that `foreseen_ns` would give if nothing had been measured.
std::int64_t guessed_ns(const Machine& machine, const Demand& demand);

/// Returns what the instruction does in terms of a law: of what moves over a link, moved bytes.
Work work_of(const Demand& demand);

/// Returns the time of an instruction alone on the machine, overhead included: the measured time of
/// its kind if Machine::times has it; else what other kinds of its operation say of it
/// (OperationTimes::foreseen_ns); else guessed_ns.
std::int64_t foreseen_ns(const Machine& machine, const Demand& demand);

/// Returns a lower bound of the time: the larger of arithmetic and bytes at peak rates (data in
/// caches can be faster); 0 if the device's peaks are neither published nor measured.
double least_seconds(const Machine& machine, const Demand& demand);

}  // namespace strata::machine
