// Says as a value whether compiled Programs fit: bytes per tier, and what lacks where they do not.
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

/// One of the largest users of memory: parameters, a kind of state, inputs, or what is transient.
struct Consumer {
  runtime::Tier tier = runtime::Tier::device;
  std::string name;
  std::int64_t bytes = 0;
};

/// Host memory that is kept between steps, where it alone is above the Plan's host_bytes.
struct KeptTooMuch {
  std::int64_t budget_bytes = 0;
  std::int64_t state_bytes = 0;   ///< of state and inputs
  std::int64_t saving_bytes = 0;  ///< for saving
};

struct Fit {
  std::array<TierFit, runtime::kTiers> tiers;
  /// Names the first Program that no schedule fits into its budgets; the others were not made.
  std::optional<runtime::Shortage> shortage;
  std::optional<KeptTooMuch> kept_too_much;
  TierFit host;  ///< what counts against Plan::host_bytes, in all
  /// Lists what stands in memory at the peak of the first Program above a budget; empty: none is.
  std::string excess;
  std::vector<Consumer> largest;  ///< largest first

  [[nodiscard]] bool fits() const;
};

/// For people: what lacks. Empty where it fits.
std::string describe(const Fit& fit);

/// Whether the device's arena counts against Plan::host_bytes: the host is the device, and its
/// arena has no budget of its own.
bool shares_host_memory(const runtime::Plan& plan);

/// What Programs take of Plan::host_bytes.
std::int64_t host_arena_bytes(const StepPrograms& programs);

/// Compares Programs that were all made with their budgets.
Fit find_fit(const StepPrograms& programs, const runtime::TierBytes& budget_bytes);

}  // namespace strata::compile
