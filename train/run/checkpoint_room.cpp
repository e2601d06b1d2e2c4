#include "train/run/checkpoint_room.h"

#include <fmt/core.h>
#include <algorithm>

#include "core/error.h"
#include "core/format_bytes.h"

namespace strata::train {
namespace {

/// Text of a number of bytes: rounded for people, exact for scripts.
std::string bytes_text(std::int64_t bytes) {
  const std::string text = format_bytes(bytes);
  return bytes < 1024 ? text : fmt::format("{} ({} bytes)", text, bytes);
}

}  // namespace

std::int64_t checkpoints_to_come(const TrainOptions& options, std::int64_t first_step,
                                 std::int64_t there) {
  const CheckpointOptions& checkpoint = options.checkpoint;
  std::int64_t saves = 1;  // the one after the last step
  if (checkpoint.every.steps > 0) {
    const std::int64_t last = std::max<std::int64_t>(0, options.steps - 1);
    saves += std::max<std::int64_t>(
        0, last / checkpoint.every.steps - first_step / checkpoint.every.steps);
  }
  if (checkpoint.every.seconds > 0 && checkpoint.keep > 0) saves = checkpoint.keep + 1;
  if (checkpoint.keep == 0 || checkpoint.keep_every > 0) return saves;
  return std::clamp<std::int64_t>(checkpoint.keep + 1 - there, 1, saves);
}

std::string require_room(const CheckpointRoom& room, const TrainOptions& options,
                         std::int64_t first_step) {
  if (room.free_bytes < room.one_bytes)
    throw HostError(room.output + ": a checkpoint needs " + bytes_text(room.one_bytes) +
                    " there, of which " + bytes_text(room.free_bytes) +
                    " are free; make room, or name an --output on another disk");
  const std::int64_t count = checkpoints_to_come(options, first_step, room.there);
  if (count <= room.free_bytes / room.one_bytes) return "";
  return fmt::format(
      "{}: up to {} more checkpoints of {} are to come{}, and {} are free, which is room for {}; a "
      "save without room is left out, and the last one would be lost",
      room.output, count, bytes_text(room.one_bytes),
      options.checkpoint.keep > 0
          ? fmt::format(" (--keep {}: an old one goes when the next is whole)",
                        options.checkpoint.keep)
          : " (--keep N keeps the newest N)",
      bytes_text(room.free_bytes), room.free_bytes / room.one_bytes);
}

}  // namespace strata::train
