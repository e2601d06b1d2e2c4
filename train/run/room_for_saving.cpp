#include "train/run/room_for_saving.h"

#include "comm/fail_together.h"
#include "core/error.h"

namespace strata::train {

bool RoomForSaving::accepts(const compile::Compiled& tried) {
  const auto failure = comm::fail_together(machines_.ranks, [&] {
    require_fit(tried.fit, machines_.request);
    machines_.require_memory(tried.programs);
    machines_.disk.require_room(tried.programs.disk_bytes(), machines_.request.local_ranks);
  });
  if (!failure) return true;
  refusals_.push_back(failure->message());
  if (failure->code != ExitCode::host && failure->code != ExitCode::io)
    throw Error(failure->code, refusals_.back());
  return false;
}

std::string RoomForSaving::note(runtime::SaveMemory chosen) const {
  const std::string reason =
      refusals_.empty() ? "steps are faster with the host memory that a snapshot would keep"
                        : refusals_.back();
  if (chosen == runtime::SaveMemory::windows)
    return "the step after a saved one waits for the drive, as what is saved goes there in "
           "windows: " +
           reason;
  if (chosen == runtime::SaveMemory::writing)
    return "training will stand still while a checkpoint is written: " + reason;
  return "";
}

}  // namespace strata::train
