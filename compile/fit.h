// Says as a value whether compiled Programs fit: bytes per tier, and what is lacking if not.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compile/step_programs.h"
#include "runtime/program/shortage.h"

namespace strata::compile {

/// Compares what Programs need of one tier of a rank with its budget.
struct TierFit {
  std::int64_t needed_bytes = 0;  ///< the arena, or the floor of a Program that was not made
  std::int64_t budget_bytes = runtime::kUnlimited;
  [[nodiscard]] bool fits() const { return needed_bytes <= budget_bytes; }
};

/// One of the largest users of memory: parameters, a kind of state, inputs, or transient values.
struct MemoryUser {
  runtime::Tier tier = runtime::Tier::device;
  std::string name;
  std::int64_t bytes = 0;
};

/// Host memory that is kept between steps, set if it alone exceeds the Plan's host_bytes.
struct KeptTooMuch {
  std::int64_t budget_bytes = 0;
  std::int64_t state_bytes = 0;   ///< state and inputs
  std::int64_t saving_bytes = 0;  ///< memory for saving
};

struct Fit {
  std::array<TierFit, runtime::kTiers> tiers;
  /// Names the first Program that no schedule fits into its budgets; the others were not made.
  std::optional<runtime::Shortage> shortage;
  std::optional<KeptTooMuch> kept_too_much;
  TierFit host;  ///< all that counts against Plan::host_bytes
  /// Lists what is in memory at the peak of the first Program above a budget; empty if none is.
  std::string excess;
  std::vector<MemoryUser> largest;  ///< largest first

  [[nodiscard]] bool fits() const;
};

/// Describes for people what is lacking. Empty if all fits.
std::string describe(const Fit& fit);

/// True if the device's arena counts against Plan::host_bytes: the host is the device, and the
/// arena has no budget of its own.
bool shares_host_memory(const runtime::Plan& plan);

/// Returns the bytes that Programs take of Plan::host_bytes.
std::int64_t host_arena_bytes(const StepPrograms& programs);

/// Compares Programs with their budgets. All of them must have been made.
Fit find_fit(const StepPrograms& programs, const runtime::TierBytes& budget_bytes);

}  // namespace strata::compile
