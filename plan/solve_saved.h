// Chooses for every layer what becomes of each saved value, so that a device's peak stays within a
// budget and the foreseen step is short.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "plan/saved_problem.h"
#include "runtime/graph/plan.h"

namespace strata::plan {

struct SavedAnswer {
  std::vector<runtime::BlockActions> saved;
  /// Time of a step that the chain solver (docs/adr/0018) counts for recomputation and for waits
  /// for the link.
  std::int64_t extra_ns = 0;
  double step_seconds = 0;      ///< foreseen, under the budget
  std::int64_t peak_bytes = 0;  ///< of the device's arena, under the budget
};

/// Empty if nothing fits, although all is recomputed or sent away that may be. Answers of the chain
/// solver, with and without values that leave, and for budgets that leave memory to transfers, are
/// compiled under the budget; the one with the shortest foreseen step is returned. Limits of other
/// tiers that the Plan has are not looked at. Equal arguments give equal answers, so all ranks find
/// the same if they ask for one of them, that with the largest shards. Adds what it compiles to
/// `work`, if there is one.
std::optional<SavedAnswer> solve_saved(const SavedProblem& problem, std::int64_t* work = nullptr);

}  // namespace strata::plan
