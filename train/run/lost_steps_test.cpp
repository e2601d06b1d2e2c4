#include "train/run/lost_steps.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

TEST(LostSteps, AreThoseSinceTheNewestCheckpoint) {
  const TestDirectory output;
  for (const char* name : {"step-00000003", "step-00000006"})
    std::filesystem::create_directory(output / name);
  const std::string newest = output / "step-00000006";
  EXPECT_EQ(what_is_lost(output.path(), 9),
            "steps 7 to 9 are lost: the newest checkpoint is " + newest);
  EXPECT_EQ(what_is_lost(output.path(), 7), "step 7 is lost: the newest checkpoint is " + newest);
  EXPECT_EQ(what_is_lost(output.path(), 6), "nothing is lost: " + newest + " is of this step");
}

TEST(LostSteps, AreAllWithoutACheckpoint) {
  const TestDirectory output;
  EXPECT_EQ(what_is_lost(output.path(), 2),
            "steps 1 to 2 are lost: " + output.path() + " has no checkpoint");
  EXPECT_EQ(what_is_lost("", 1), "step 1 is lost: there is no --output");
}

}  // namespace
}  // namespace strata::train
