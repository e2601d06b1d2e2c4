#include "train/session/missing_steps.h"

#include <gtest/gtest.h>

namespace strata::train {
namespace {

TEST(MissingSteps, NothingIsSaidOfALogWithoutGaps) {
  MissingSteps missing;
  for (int step = 1; step < 9; ++step) EXPECT_EQ(missing.take(step, true), "");
  EXPECT_EQ(missing.text(), "");
}

TEST(MissingSteps, TheFirstGapIsSaidWhenItEnds) {
  MissingSteps missing;
  EXPECT_EQ(missing.take(4, true), "");
  for (int step = 5; step < 17; ++step) EXPECT_EQ(missing.take(step, false), "");
  EXPECT_EQ(missing.text(), "12 steps are missing: 5 to 16");
  EXPECT_EQ(missing.take(17, true), "written again from step 17 on; 12 steps are missing: 5 to 16");
  EXPECT_EQ(missing.take(18, true), "");
  EXPECT_EQ(missing.text(), "12 steps are missing: 5 to 16") << "for the end of the run";
}

TEST(MissingSteps, LaterGapsAreCountedForTheEnd) {
  MissingSteps missing;
  (void)missing.take(1, false);
  EXPECT_EQ(missing.text(), "1 step is missing: 1");
  EXPECT_NE(missing.take(2, true), "");
  (void)missing.take(3, false);
  EXPECT_EQ(missing.take(4, true), "");
  for (int step = 5; step < 8; ++step) (void)missing.take(step, false);
  EXPECT_EQ(missing.text(), "5 steps are missing: 1, 3, 5 to 7");
  for (int step = 8; step < 20; ++step) (void)missing.take(step, step % 2 == 0);
  EXPECT_EQ(missing.text(), "11 steps are missing: 1, 3, 5 to 7, 9, 11, and more until 19");
}

}  // namespace
}  // namespace strata::train
