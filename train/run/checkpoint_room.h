// Checks before the first step, when their size is known, whether the disk has room for the
// checkpoints that a run is going to write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "train/checkpoint/checkpoint_directory.h"
#include "train/config/options.h"

namespace strata::train {

struct CheckpointRoom {
  std::string output;
  std::int64_t one_bytes = 0;   ///< CheckpointLayout::room_bytes
  std::int64_t free_bytes = 0;  ///< besides the checkpoints that are there
  std::int64_t there = 0;       ///< number of checkpoints in the folder
};

/// The largest number of additional checkpoints that will exist at a time, as far as the options
/// say: retention removes an old one when the next is whole.
std::int64_t checkpoints_to_come(const TrainOptions& options, std::int64_t first_step,
                                 std::int64_t there);

/// Throws HostError if there is no room even for one checkpoint. Returns what to say if there is
/// room for one but not for all that are to come; else "".
std::string require_room(const CheckpointRoom& room, const TrainOptions& options,
                         std::int64_t first_step);

}  // namespace strata::train
