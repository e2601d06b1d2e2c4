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
  LostSteps lost(output.path());
  lost.count_to(6);
  EXPECT_EQ(lost.text(9), "steps 7 to 9 are lost: the newest checkpoint is " + newest);
  EXPECT_EQ(lost.text(7), "step 7 is lost: the newest checkpoint is " + newest);
  EXPECT_EQ(lost.text(6), "nothing is lost: " + newest + " is of this step");
  EXPECT_EQ(lost.text(-1), "nothing is lost: no step has begun");
  EXPECT_EQ(lost.lack(), "");
}

TEST(LostSteps, AreNotInCheckpointsOfAnotherRun) {
  const TestDirectory output;
  for (const char* name : {"step-00000003", "step-00000400"})
    std::filesystem::create_directory(output / name);
  LostSteps lost(output.path());
  EXPECT_EQ(lost.text(300),
            "steps 1 to 300 are lost: " + output.path() + " has no checkpoint of this run");
  EXPECT_EQ(lost.lack(), output.path() + " has no checkpoint of this run");
  lost.count_to(3);
  EXPECT_EQ(lost.text(300),
            "steps 4 to 300 are lost: the newest checkpoint is " + (output / "step-00000003"))
      << "it goes on from there, and has passed the later one over";
}

TEST(LostSteps, AreAllWithoutACheckpoint) {
  const TestDirectory output;
  const LostSteps lost(output.path());
  EXPECT_EQ(lost.text(2), "steps 1 to 2 are lost: " + output.path() + " has no checkpoint");
  EXPECT_EQ(lost.lack(), output.path() + " has no checkpoint");
  EXPECT_EQ(LostSteps("").text(1), "step 1 is lost: there is no --output");
}

}  // namespace
}  // namespace strata::train
