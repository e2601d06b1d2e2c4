#include "train/config/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::train {
namespace {

using ::testing::HasSubstr;

BatchNumber file(std::int64_t value) { return {value, false}; }
BatchNumber flag(std::int64_t value) { return {value, true}; }
const BatchNumber kNone;

struct Row {
  const char* what;
  BatchRequest request;  ///< global, micro, accumulation
  std::int64_t world;
  std::int64_t global, micro, accumulation;
};

constexpr std::int64_t kMost = 1'000'000'000'000;

TEST(Batch, WhatIsMissingIsDerivedAsInDeepSpeed) {
  const Row rows[] = {
      {"all", {file(32), file(4), file(2)}, 4, 32, 4, 2},
      {"T, m", {file(32), file(4), kNone}, 4, 32, 4, 2},
      {"T, g", {file(32), kNone, file(2)}, 4, 32, 4, 2},
      {"m, g", {kNone, file(4), file(2)}, 4, 32, 4, 2},
      {"T", {file(32), kNone, kNone}, 4, 32, 8, 1},
      {"m", {kNone, file(4), kNone}, 4, 16, 4, 1},
      {"one rank", {file(6), file(2), kNone}, 1, 6, 2, 3},
      {"virtual ranks", {kNone, file(2), file(3), true}, 8, 48, 2, 3},
      {"the largest, of g", {file(kMost), kNone, file(kMost)}, 1, kMost, 1, kMost},
      {"the largest, of m", {file(kMost), file(kMost), kNone}, 1, kMost, kMost, 1},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const BatchTriple triple = solve_batch(row.request, row.world);
    EXPECT_EQ(triple.problem, "");
    EXPECT_EQ(triple.global, row.global);
    EXPECT_EQ(triple.micro, row.micro);
    EXPECT_EQ(triple.accumulation, row.accumulation);
  }
}

TEST(Batch, FlagsPushNumbersOfTheFileAside) {
  const Row rows[] = {
      {"micro: accumulation adapts", {file(64), flag(8), file(4)}, 2, 64, 8, 4},
      {"micro: accumulation adapts", {file(64), flag(16), file(4)}, 2, 64, 16, 2},
      {"micro: global adapts", {file(64), flag(5), file(4)}, 2, 40, 5, 4},
      {"accumulation: micro adapts", {file(64), file(8), flag(2)}, 2, 64, 16, 2},
      {"accumulation: global adapts", {file(64), file(8), flag(3)}, 2, 48, 8, 3},
      {"global: accumulation adapts", {flag(128), file(8), file(4)}, 2, 128, 8, 8},
      {"they agree on one rank only", {file(32), flag(8), file(4)}, 2, 32, 8, 2},
      {"micro and accumulation", {file(64), flag(3), flag(5)}, 2, 30, 3, 5},
      {"global and micro", {flag(60), flag(3), file(4)}, 2, 60, 3, 10},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const BatchTriple triple = solve_batch(row.request, row.world);
    EXPECT_EQ(triple.problem, "");
    EXPECT_EQ(triple.global, row.global);
    EXPECT_EQ(triple.micro, row.micro);
    EXPECT_EQ(triple.accumulation, row.accumulation);
    const bool agreed = row.micro == 8 && row.accumulation == 4;
    EXPECT_EQ(triple.note.empty(), agreed);
  }
}

std::string problem(const BatchRequest& request, std::int64_t world) {
  return solve_batch(request, world).problem;
}

TEST(Batch, ImpossibleTriplesSayWhatWouldWork) {
  EXPECT_EQ(problem({file(100), file(8), kNone}, 8),
            "train_batch_size 100 is not divisible by micro batch 8 x 8 ranks = 64; nearest: "
            "64 (accumulation 1) or 128 (accumulation 2)");
  EXPECT_EQ(problem({file(10), kNone, file(2)}, 8),
            "train_batch_size 10 is not divisible by accumulation 2 x 8 ranks = 16; nearest: "
            "16 (micro batch 1)");
  EXPECT_EQ(problem({file(10), kNone, kNone}, 4),
            "train_batch_size 10 is not divisible by 4 ranks; nearest: "
            "8 (micro batch 2) or 12 (micro batch 3)");
  EXPECT_THAT(problem({file(16), file(1), file(8)}, 8), HasSubstr("= 64; set train_batch_size to"));
  EXPECT_THAT(
      problem({flag(16), flag(1), flag(8)}, 8),
      HasSubstr("--global-batch 16 is not micro batch 1 x accumulation 8 x 8 ranks = 64; set "
                "--global-batch to 64, or"));
  EXPECT_THAT(
      problem({flag(2), kNone, kNone}, 8),
      HasSubstr("--global-batch 2 is not divisible by 8 ranks; nearest: 8 (micro batch 1)"));
  EXPECT_THAT(problem({kNone, kNone, file(2)}, 2), HasSubstr("(--micro-batch) is needed"));
  EXPECT_THAT(problem({kNone, file(1 << 24), file(1 << 24)}, 1 << 20), HasSubstr("10^12"));
}

}  // namespace
}  // namespace strata::train
