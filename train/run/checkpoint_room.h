// Whether the disk has room for the checkpoints that a run is going to write: asked before its
// first step, since their size is known then.
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
  std::int64_t free_bytes = 0;  ///< beside those that are there
  std::int64_t there = 0;       ///< checkpoints of the folder
};

/// How many more checkpoints than now will lie there at a time, at most, as far as the options say:
/// retention removes an old one once the next is whole.
std::int64_t checkpoints_to_come(const TrainOptions& options, std::int64_t first_step,
                                 std::int64_t there);

/// Throws HostError when not even one checkpoint has room. What to say where one has and those that
/// are to come together have not; else "".
std::string require_room(const CheckpointRoom& room, const TrainOptions& options,
                         std::int64_t first_step);

}  // namespace strata::train
