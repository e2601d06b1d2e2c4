// Runs whole runs in virtual time. STRATA_SEEDS=100000 runs more of them, from STRATA_FIRST_SEED.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "launcher/control/testing/simulated_run.h"

namespace strata::launcher::simulation {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Faults 1, 7, 8, 9, 10, 11, 13, 31, 34.
TEST(Simulation, EveryRunKeepsItsPromises) {
  const std::uint64_t first = number_from("STRATA_FIRST_SEED", 1);
  const std::uint64_t seeds = number_from("STRATA_SEEDS", 2000);
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const std::string failure = find_failure(seed);
    ASSERT_TRUE(failure.empty()) << "seed " << seed << ", " << failure;
  }
}

}  // namespace
}  // namespace strata::launcher::simulation
