// Constants and types that the searches for the fastest and for the smallest step share; private to
// BudgetSearch.
#pragma once

#include <cstddef>
#include <string>

#include "plan/budget_search.h"

namespace strata::plan {

/// Steps that are foreseen to be faster by less are as fast: then what moves less is taken.
inline constexpr double kNoFaster = 1.01;
/// The share of recomputation goes in steps of 1 / kShareSteps.
inline constexpr int kShareSteps = 16;
inline constexpr double kShare = 1.0 / kShareSteps;

/// An alternative on its way to being compiled.
struct BudgetSearch::Entry {
  Choices choices;
  double price = 0;
  std::size_t order = 0;  ///< place among the alternatives: of equally fast ones the first wins
  bool is_bound = false;  ///< `price` is a bound, and `least` fits; else both are guesses
  bool is_likely = true;  ///< guessed to fit
  MemoryNeeds least;
};

/// Returns the name of the memory that Programs lack, "device memory"; of what does not fit in no
/// memory of a rank, that of drives.
std::string lacking_memory(const compile::Fit& fit, bool own_device);

}  // namespace strata::plan
