#include "train/session/last_words.h"

#include <gtest/gtest.h>

namespace strata::train {
namespace {

using std::chrono::milliseconds;

milliseconds wait_of(int rank, Phase phase = Phase::starting,
                     ExitCode code = ExitCode::configuration) {
  return wait_before_last_words({.rank = rank, .world = 1000}, phase, code);
}

TEST(LastWords, RankZeroSpeaksAtOnce) { EXPECT_EQ(wait_of(0), milliseconds(0)); }

TEST(LastWords, TheOthersWaitForItAndForTheLowerOnes) {
  EXPECT_EQ(wait_of(1), milliseconds(2000));
  EXPECT_EQ(wait_of(2), milliseconds(2200));
  EXPECT_EQ(wait_of(999), milliseconds(6000));
  for (const ExitCode code : {ExitCode::usage, ExitCode::data, ExitCode::host, ExitCode::io})
    EXPECT_GT(wait_of(1, Phase::planning, code), milliseconds(0));
}

TEST(LastWords, NobodyWaitsWithWhatOneRankMeetsAlone) {
  for (const Phase phase : {Phase::loading, Phase::forward, Phase::update, Phase::saving})
    EXPECT_EQ(wait_of(1, phase), milliseconds(0));
  for (const ExitCode code : {ExitCode::internal, ExitCode::try_again})
    EXPECT_EQ(wait_of(1, Phase::planning, code), milliseconds(0));
}

}  // namespace
}  // namespace strata::train
