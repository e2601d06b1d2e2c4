#include "train/run/room_for_saving.h"

#include "comm/fail_together.h"
#include "comm/gather_texts.h"
#include "core/error.h"

namespace strata::train {
namespace {

/// A refusal of Programs with a snapshot as the reason for others: "out of memory: " would say that
/// the run has failed.
std::string reason_of(const std::string& refusal) {
  const std::size_t colon = refusal.find(": ", refusal.find("out of "));
  if (colon == std::string::npos) return refusal;
  return "with a snapshot, " + refusal.substr(colon + 2);
}

}  // namespace

bool RoomForSaving::accepts(const compile::Compiled& tried) {
  std::string mine;
  if (const auto failure = comm::fail_together(machines_.ranks, [&] { mine = lacking(tried); }))
    throw Error(failure->code, failure->message());
  for (const std::string& lacks : comm::gather_texts(machines_.ranks, mine)) {
    if (lacks.empty()) continue;
    refusals_.push_back(lacks);
    return false;
  }
  return true;
}

std::string RoomForSaving::lacking(const compile::Compiled& tried) const {
  if (!tried.fit.fits()) return lacking_memory(tried.fit, machines_.request);
  std::string memory = machines_.lacking_memory(tried.programs);
  if (!memory.empty()) return memory;
  return machines_.disk.lacking_room(tried.programs.disk_bytes(), machines_.request.local_ranks);
}

std::string RoomForSaving::note(runtime::SaveMemory chosen) const {
  const std::string reason =
      refusals_.empty() ? "steps are faster with the host memory that a snapshot would keep"
                        : reason_of(refusals_.back());
  if (chosen == runtime::SaveMemory::windows)
    return "the step after a saved one waits for the drive, as what is saved goes there in "
           "windows: " +
           reason;
  if (chosen == runtime::SaveMemory::writing)
    return "training will stand still while a checkpoint is written: " + reason;
  return "";
}

}  // namespace strata::train
