#include "train/run/plan_for_saving.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "comm/together.h"
#include "core/error.h"

namespace strata::train {
namespace {

class Planner {
 public:
  explicit Planner(const SavePlanning& planning) : planning_(planning) {}

  ProgramSet run() {
    if (auto programs = attempt(SaveMemory::snapshot)) return std::move(*programs);
    const std::string no_copy = reason_;
    if (auto programs = attempt(SaveMemory::windows)) {
      planning_.console.note(
          "the step behind a saved one waits for the drive, as what is saved goes there in "
          "windows: " +
          no_copy);
      return std::move(*programs);
    }
    ProgramSet programs = planning_.build(SaveMemory::writing);
    planning_.console.note("training will stand still while a checkpoint is written: " + reason_);
    return programs;
  }

 private:
  std::optional<ProgramSet> attempt(SaveMemory saving) {
    std::optional<ProgramSet> programs;
    const bool fits = agree([&] {
      programs = planning_.build(saving);
      planning_.require_memory(*programs);
      planning_.disk.require_room(programs->disk_bytes(), planning_.local_ranks);
    });
    return fits ? std::move(programs) : std::nullopt;
  }

  /// False, and `reason_` on all ranks, where a rank's machine cannot. Throws other failures.
  template <typename Body>
  bool agree(const Body& body) {
    const auto failure = comm::together(planning_.ranks, body);
    if (!failure) return true;
    reason_ = failure->message();
    if (failure->code != ExitCode::host && failure->code != ExitCode::io)
      throw Error(failure->code, reason_);
    return false;
  }

  const SavePlanning& planning_;
  std::string reason_;
};

}  // namespace

ProgramSet plan_for_snapshots(const SavePlanning& planning) { return Planner(planning).run(); }

}  // namespace strata::train
