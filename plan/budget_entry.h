// The parts that searches for the fastest and for the smallest step share; private to BudgetSearch.
#pragma once

#include <cstddef>

#include "plan/budget_search.h"

namespace strata::plan {

/// An alternative on its way to being compiled.
struct BudgetSearch::Entry {
  Choices choices;
  double price = 0;
  std::size_t order = 0;  ///< place among the alternatives: of equally fast ones the first wins
  bool is_bound = false;  ///< `price` is a bound, and `least` fits; else both are guesses
  bool is_likely = true;  ///< guessed to fit
  MemoryNeeds least;
};

}  // namespace strata::plan
