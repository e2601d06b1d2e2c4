#include "runtime/chain/chain_solver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "runtime/testing/random_chain.h"

namespace strata::runtime {
namespace {

constexpr ChainEffort kUnlimitedEffort{std::int64_t{1} << 50};

TEST(ChainSolver, FindsWhatBruteForceFinds) {
  int feasible = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Chain chain = random_chain(seed);
    const BruteForce all = try_all_choices(chain);
    const ChainSolution found = solve_chain(chain, kUnlimitedEffort);
    ASSERT_EQ(found.fits(), all.fits);
    ASSERT_EQ(found.floor_bytes, all.floor_bytes);
    if (!all.fits) continue;
    ++feasible;
    ASSERT_EQ(found.cost.extra_ns, all.extra_ns);
    ASSERT_TRUE(found.proven);
    ASSERT_EQ(found.lower_bound_ns, all.extra_ns);
    ASSERT_EQ(chain_cost(chain, found.choice), found.cost);
    ASSERT_LE(found.cost.peak_bytes, chain.budget_bytes);
  }
  EXPECT_GT(feasible, 1500);
  EXPECT_LT(feasible, 2900);
  RecordProperty("feasible", feasible);
}

TEST(ChainSolver, FitsAtTheFloorAndNotBelow) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chain chain = random_chain(seed, {.least_blocks = 8, .most_blocks = 16, .most_options = 8});
    const std::int64_t floor = solve_chain(chain).floor_bytes;
    if (floor < 0) continue;
    chain.budget_bytes = floor;
    EXPECT_TRUE(solve_chain(chain).fits());
    if (floor == 0) continue;
    chain.budget_bytes = floor - 1;
    EXPECT_FALSE(solve_chain(chain).fits());
  }
}

TEST(ChainSolver, IsNeverSlowerWithMoreMemoryNorAboveTheBudget) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chain chain = random_chain(seed, {.least_blocks = 3, .most_blocks = 8, .most_options = 6});
    const std::int64_t floor = solve_chain(chain).floor_bytes;
    if (floor < 0) continue;
    std::int64_t before = -1;
    for (int rung = 0; rung <= 12; ++rung) {
      chain.budget_bytes = floor + floor * rung / 8;
      const ChainSolution found = solve_chain(chain, kUnlimitedEffort);
      ASSERT_TRUE(found.fits() && found.proven);
      ASSERT_LE(found.cost.peak_bytes, chain.budget_bytes);
      if (before >= 0) {
        ASSERT_LE(found.cost.extra_ns, before);
      }
      before = found.cost.extra_ns;
    }
  }
}

TEST(ChainSolver, IsNeverSlowerWithFasterEngines) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chain chain = random_chain(seed, {.least_blocks = 3, .most_blocks = 8, .most_options = 6});
    std::int64_t before = -1;
    for (int rung = 0; rung < 8; ++rung) {
      const ChainSolution found = solve_chain(chain, kUnlimitedEffort);
      if (before >= 0) {
        ASSERT_LE(found.cost.extra_ns, before);
      }
      if (found.fits()) before = found.cost.extra_ns;
      std::int64_t& rate = rung % 2 == 0 ? chain.link.out_bytes_per_s : chain.link.in_bytes_per_s;
      rate = std::min<std::int64_t>(rate + rate / 3, 1'000'000'000'000);
      chain.disk.out_bytes_per_s += chain.disk.out_bytes_per_s / 5;
    }
  }
}

TEST(ChainSolver, IsBetweenItsLowerBoundAndGreedyOnLongChains) {
  int proven = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Chain chain = random_chain(seed, {32, 32, 4, 12});
    const ChainSolution found = solve_chain(chain, {2'000'000});
    if (!found.fits()) continue;
    proven += found.proven ? 1 : 0;
    EXPECT_EQ(chain_cost(chain, found.choice), found.cost);
    EXPECT_TRUE(found.cost.fits);
    EXPECT_GE(found.cost.extra_ns, found.lower_bound_ns);
    EXPECT_EQ(found.proven, found.cost.extra_ns == found.lower_bound_ns);
    if (found.greedy_ns >= 0) {
      EXPECT_LE(found.cost.extra_ns, found.greedy_ns);
    }
  }
  RecordProperty("proven", proven);
}

TEST(ChainSolver, WithLittleEffortSaysWhatIsNotProvenAndBoundsIt) {
  int open = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Chain chain = random_chain(seed, {8, 12, 4, 8});
    const ChainSolution best = solve_chain(chain, kUnlimitedEffort);
    for (const std::int64_t most : {0, 300, 3000}) {
      const ChainSolution found = solve_chain(chain, {most});
      ASSERT_EQ(found.fits(), best.fits());
      if (!found.fits()) continue;
      open += found.proven ? 0 : 1;
      EXPECT_GE(found.cost.extra_ns, best.cost.extra_ns);
      EXPECT_LE(found.lower_bound_ns, best.cost.extra_ns);
      if (found.proven) {
        EXPECT_EQ(found.cost.extra_ns, best.cost.extra_ns);
      }
      EXPECT_EQ(solve_chain(chain, {most}, {best.choice}).cost.extra_ns, best.cost.extra_ns);
    }
  }
  EXPECT_GT(open, 0);
}

}  // namespace
}  // namespace strata::runtime
