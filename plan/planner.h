// Plans a run under a memory budget: chooses what is sharded, recomputed and offloaded, in which
// micro-steps, so that the foreseen step is short and the Programs fit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/budget_search.h"
#include "plan/reasons.h"
#include "plan/strategy.h"
#include "plan/target_terms.h"

namespace strata::plan {

struct PlannerRequest {
  /// The frame of the Plans. Its budget_bytes[device] and host_bytes are the memory budgets of a
  /// rank; where the host is the device, host_bytes counts both. `accepts` is not called.
  const Search& search;
  Choices asked;
  Freedom free;
  Strategy strategy = Strategy::balanced;
  std::int64_t disk_bytes = runtime::kUnlimited;  ///< of drives, for a rank
  /// What a target leaves arenas, of which the strategy keeps a part free, where the frame's limits
  /// are those of arenas themselves; absent: the strategy keeps a part of the frame's limits free.
  std::optional<MemoryLimits> target;
  TargetTerms terms = {};           ///< of the target that a refusal names
  Home farthest_told = Home::disk;  ///< advice names no home that is farther from the device
  /// The effort after which the search ends with the best that it has (BudgetSearch). Work is
  /// counted, not time, so that equal requests get equal answers.
  std::int64_t most_work = 1'400'000;
};

/// The reason for which there is no answer.
enum class PlannerRefusal : std::uint8_t {
  none,
  too_large,  ///< even `smallest` does not fit
  too_slow,   ///< `fitting` fits, but is slower than the strategy allows
};

struct PlannerAnswer {
  std::optional<PlannedStep> chosen;
  bool is_asked = false;    ///< what was asked for fits already, and stays
  bool other_bits = false;  ///< what was chosen gives other bits than what was asked for
  PlannerRefusal refusal = PlannerRefusal::none;
  std::optional<PlannedStep> fitting;    ///< for too_slow: the fastest that was found
  std::optional<PlannedStep> unlimited;  ///< the fastest step if memory had no limit
  /// The least memory that any of the choices needs; absent if it was not looked for. What a
  /// refusal names: if `complete`, a target that is less by a hundredth is refused, too.
  std::optional<PlannedStep> smallest;
  /// The least memory with which steps are as fast as the strategy demands, whatever the target:
  /// with it, and with more, the strategy plans. Always looked for by `aggressive`, whose choice it
  /// is where it fits, and by `conservative` for refusals, which name it; absent for the others,
  /// which demand nothing.
  std::optional<PlannedStep> accepted;
  /// For too_large, on a device with its own memory: the choices for which fewest memories are too
  /// small, by fewest bytes, and what they need.
  std::optional<PlannedStep> nearest;
  bool complete = true;  ///< false: not all that may be faster, or that may need less, was tried
  std::int64_t work = 0;
  std::vector<Attempt> attempts;
  /// For chosen, unless it is what was asked for: what to take back each of its settings would do.
  std::vector<PricedChange> reasons;
  /// For too_large: single changes of what was asked for, or of `nearest` if that lacks host memory
  /// alone, those first that save most bytes for their time; and what freeing each of the given
  /// settings would reach, against `smallest`.
  std::vector<PricedChange> changes, forbidden;

  /// Returns by which factor steps of `step` are slower than without a limit; 1 if that is unknown.
  [[nodiscard]] double slowdown(const PlannedStep& step) const;
};

/// Equal requests give equal answers, and all ranks of a run find the same: machine and frame are
/// the same on all of them. Throws InvalidArgument if what was asked for contradicts itself.
PlannerAnswer plan_for_budget(const PlannerRequest& request);

}  // namespace strata::plan
