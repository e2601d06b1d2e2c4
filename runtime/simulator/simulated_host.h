// The instructions that run on one simulated host, and how far they have come.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/schedule/schedule_rates.h"
#include "runtime/simulator/instruction_work.h"

namespace strata::runtime {

/// A time that never comes.
inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// Queues are numbered slots, each of which runs one instruction at a time. Rates are max-min
/// fair shares of the host's resources, times whole nanoseconds.
class SimulatedHost {
 public:
  explicit SimulatedHost(int resources) : fair_rates_(resources) {}

  /// Lets `slot`, which is free, run `work`, which stays until it has ended. `now_ns`: at least
  /// that of every call before.
  void start(int slot, const InstructionWork& work, std::int64_t now_ns);
  /// Goes on to `now_ns`, and appends the slots whose work has ended by then, ascending.
  void advance(std::int64_t now_ns, std::vector<int>& ended);
  /// Finds rates for what runs now; returns when the next of it ends.
  std::int64_t next_end_ns();

 private:
  struct Running {
    int slot = 0;
    const std::vector<ResourceShare>* shares = nullptr;
    std::int64_t left = 0;  // in 1 / kFullRate ns of the work alone
    std::int64_t rate = 0;
  };
  void go_on(std::int64_t now_ns);

  std::vector<Running> running_;  // by slot, ascending
  std::int64_t now_ns_ = 0;
  FairRates fair_rates_;
  std::vector<const std::vector<ResourceShare>*> shares_;
};

}  // namespace strata::runtime
