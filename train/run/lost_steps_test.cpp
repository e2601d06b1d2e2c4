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
  lost.go_on_from(3, output / "step-00000003", true);
  lost.count(6, true);
  EXPECT_EQ(lost.text(9), "steps 7 to 9 are lost: the newest checkpoint is " + newest);
  EXPECT_EQ(lost.text(7), "step 7 is lost: the newest checkpoint is " + newest);
  EXPECT_EQ(lost.text(6), "nothing is lost: " + newest + " is of this step");
  EXPECT_EQ(lost.text(-1), "nothing is lost: no step has begun");
  EXPECT_FALSE(lost.are_all());
  EXPECT_EQ(lost.rest(), "earlier checkpoints in " + output.path() + " are whole");
}

TEST(LostSteps, AreNotInCheckpointsOfAnotherRun) {
  const TestDirectory output;
  for (const char* name : {"step-00000003", "step-00000400"})
    std::filesystem::create_directory(output / name);
  LostSteps lost(output.path());
  const std::string lack = output.path() + " has no checkpoint of this run";
  EXPECT_EQ(lost.text(300), "steps 1 to 300 are lost: " + lack);
  EXPECT_TRUE(lost.are_all());
  EXPECT_EQ(lost.rest(), lack + ": all steps are lost");
  lost.go_on_from(3, output / "step-00000003", true);
  EXPECT_EQ(lost.text(300),
            "steps 4 to 300 are lost: the newest checkpoint is " + (output / "step-00000003"))
      << "it goes on from there, and has passed the later one over";
}

TEST(LostSteps, BeginAfterTheCheckpointOfAnotherFolder) {
  const TestDirectory output, other;
  const std::string from = other / "step-00000006";
  std::filesystem::create_directory(from);
  LostSteps lost(output.path());
  lost.go_on_from(6, from, false);
  EXPECT_EQ(lost.text(9), "steps 7 to 9 are lost: the newest checkpoint is " + from);
  EXPECT_FALSE(lost.are_all());
  EXPECT_EQ(lost.rest(), from + ", which the run went on from, is whole");
  std::filesystem::create_directory(output / "step-00000004");
  EXPECT_EQ(lost.text(9), "steps 7 to 9 are lost: the newest checkpoint is " + from)
      << "the earlier one in --output is another run's";
  std::filesystem::create_directory(output / "step-00000008");
  EXPECT_EQ(lost.text(9), "steps 7 to 9 are lost: the newest checkpoint is " + from);
  lost.count(8, true);
  EXPECT_EQ(lost.text(9), "step 9 is lost: the newest checkpoint is " + (output / "step-00000008"));
  EXPECT_EQ(lost.rest(), "earlier checkpoints in " + output.path() + " are whole");
  LostSteps unsaved("");
  unsaved.go_on_from(6, from, false);
  EXPECT_EQ(unsaved.text(9), "steps 7 to 9 are lost: the newest checkpoint is " + from);
  std::filesystem::remove(from);
  EXPECT_EQ(unsaved.text(9), "steps 1 to 9 are lost: there is no --output");
}

TEST(LostSteps, AreAllWithoutACheckpoint) {
  const TestDirectory output;
  const LostSteps lost(output.path());
  EXPECT_EQ(lost.text(2), "steps 1 to 2 are lost: " + output.path() + " has no checkpoint");
  EXPECT_EQ(lost.rest(), output.path() + " has no checkpoint: all steps are lost");
  EXPECT_EQ(LostSteps("").text(1), "step 1 is lost: there is no --output");
}

/// What --resume auto passes over saves nothing.
TEST(LostSteps, AreNotInCheckpointsThatAreNotFinite) {
  const TestDirectory output;
  LostSteps lost(output.path());
  std::filesystem::create_directory(output / "step-00000003");
  lost.count(3, false);
  const std::string lack = output.path() + " has no finite checkpoint of this run";
  EXPECT_EQ(lost.text(3), "steps 1 to 3 are lost: " + lack);
  EXPECT_TRUE(lost.are_all());
  EXPECT_EQ(lost.rest(), lack + ": all steps are lost");
  std::filesystem::create_directory(output / "step-00000006");
  lost.count(6, true);
  const std::string newest = output / "step-00000006";
  EXPECT_EQ(lost.text(6), "nothing is lost: " + newest + " is of this step");
  std::filesystem::create_directory(output / "step-00000009");
  lost.count(9, false);
  EXPECT_EQ(lost.text(9), "steps 7 to 9 are lost: the newest finite checkpoint is " + newest);
  EXPECT_FALSE(lost.are_all());
  std::filesystem::remove(output / "step-00000009");
  EXPECT_EQ(lost.text(9), "steps 7 to 9 are lost: the newest checkpoint is " + newest);
}

}  // namespace
}  // namespace strata::train
