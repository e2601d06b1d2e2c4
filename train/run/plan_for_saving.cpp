#include "train/run/plan_for_saving.h"

#include <algorithm>
#include <cstdio>
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
    const std::string no_memory = reason_;
    if (agree([&] { planning_.disk.serve_snapshots(planning_.output, planning_.ranks); }))
      if (auto programs = attempt(SaveMemory::windows)) {
        note("what a checkpoint saves is copied to " + planning_.disk.paths() +
             " first, for want of memory: " + no_memory);
        return std::move(*programs);
      }
    planning_.disk.serve_no_snapshots();
    note("training will stand still while a checkpoint is written: " + reason_);
    return planning_.build(SaveMemory::writing);
  }

 private:
  void note(const std::string& text) const {
    if (planning_.ranks.rank() == 0) std::fprintf(stderr, "note: %s\n", text.c_str());
  }

  std::optional<ProgramSet> attempt(SaveMemory saving) {
    std::optional<ProgramSet> programs;
    const bool fits = agree([&] {
      programs = planning_.build(saving);
      planning_.require_memory(*programs);
      planning_.disk.require_room(programs->disk_bytes(), planning_.local_ranks,
                                  bytes_of_copies(*programs));
    });
    return fits ? std::move(programs) : std::nullopt;
  }

  /// About what the rank writes of a checkpoint: what lies on the disk has its own place there.
  static std::int64_t bytes_of_copies(const ProgramSet& programs) {
    std::int64_t bytes = 0;
    for (const zero::SnapshotPiece& piece : programs.snapshot_pieces)
      bytes += piece.end - piece.begin;
    return bytes;
  }

  /// False, and `reason_` on all ranks, where a rank's machine cannot. Throws other failures.
  template <typename Body>
  bool agree(const Body& body) {
    const auto failure = comm::together(planning_.ranks, body);
    if (!failure) return true;
    reason_ = failure->messages[static_cast<std::size_t>(failure->rank)];
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
