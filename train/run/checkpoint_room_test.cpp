#include "train/run/checkpoint_room.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace strata::train {
namespace {

TrainOptions options(std::int64_t steps, SaveInterval every, std::int64_t keep = 0) {
  TrainOptions options;
  options.steps = steps;
  options.checkpoint.every = every;
  options.checkpoint.keep = keep;
  return options;
}

TEST(CheckpointRoom, CountsWhatWillLieThereAtATime) {
  EXPECT_EQ(checkpoints_to_come(options(100, {}), 0, 0), 1);
  EXPECT_EQ(checkpoints_to_come(options(100, {.steps = 10}), 0, 0), 10);
  EXPECT_EQ(checkpoints_to_come(options(105, {.steps = 10}), 0, 0), 11);
  EXPECT_EQ(checkpoints_to_come(options(100, {.steps = 10}), 35, 3), 7);
  EXPECT_EQ(checkpoints_to_come(options(100, {.steps = 10}, 3), 0, 0), 4);
  EXPECT_EQ(checkpoints_to_come(options(100, {.steps = 10}, 3), 30, 3), 1);
  EXPECT_EQ(checkpoints_to_come(options(20, {.steps = 10}, 3), 0, 0), 2);
  EXPECT_EQ(checkpoints_to_come(options(100, {.steps = 0, .seconds = 60}, 2), 0, 0), 3);
  EXPECT_EQ(checkpoints_to_come(options(100, {.steps = 0, .seconds = 60}), 0, 0), 1);
}

// Fault 14.
TEST(CheckpointRoom, RefusesWhatHasNoRoomAndSaysWhatWillHaveNone) {
  const TrainOptions kept = options(100, {.steps = 10}, 3);
  EXPECT_EQ(require_room({"out", 1000, 4000, 0}, kept, 0), "");
  const std::string note = require_room({"out", 1000, 3999, 0}, kept, 0);
  EXPECT_NE(note.find("up to 4 more checkpoints of 1000 bytes"), std::string::npos) << note;
  EXPECT_NE(note.find("is room for 3"), std::string::npos) << note;
  try {
    (void)require_room({"out", 1000, 999, 0}, kept, 0);
    FAIL() << "there is no room";
  } catch (const HostError& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "out: a checkpoint needs 1000 bytes there, of which 999 bytes are free; make room, or "
        "name an --output on another disk");
  }
}

}  // namespace
}  // namespace strata::train
