// Creates the folder for a run's checkpoints, locks it, and checks that all ranks see it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/fail_together.h"
#include "core/file_system.h"
#include "core/rank_context.h"
#include "train/checkpoint/output_lock.h"
#include "train/config/options.h"
#include "train/run/page_watch.h"
#include "train/run/restart.h"
#include "train/run/run_listeners.h"

namespace strata::train {

/// The output folder of a run. All calls are collective unless they say otherwise.
class OutputFolder {
 public:
  /// Creates the folder, takes its lock (each rank a part) and removes what an interrupted run
  /// left. Throws HostError if another run has it or ranks do not share it, InvalidArgument if it
  /// has checkpoints and the options neither resume nor replace them; those of an earlier attempt
  /// of this run are always gone on from. If `path` is empty, nothing is created or written.
  OutputFolder(const CheckpointOptions& options, std::string path, const RankContext& context,
               comm::Communicator& communicator, const RunListeners& listeners);

  /// Returns the folder. Not collective, like all functions up to first().
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The id of this start of the run in a form for names of files.
  [[nodiscard]] const std::string& run_tag() const { return run_tag_; }
  [[nodiscard]] FileSystem& files() { return files_; }
  [[nodiscard]] comm::Communicator& communicator() { return communicator_; }
  /// True on rank 0.
  [[nodiscard]] bool first() const { return context_.rank == 0; }
  /// Nullopt: this is the first start of the run.
  [[nodiscard]] const std::optional<Restart>& restart() const { return restart_; }
  [[nodiscard]] const PageWatch& watch() const { return watch_; }

  /// Steps of another run's checkpoints, to remove once this run has one; on rank 0, and only once.
  [[nodiscard]] std::vector<std::int64_t>& replaced() { return replaced_; }

  /// The disks on which a folder may be created again. same_disk: only where it was, so that
  /// nothing is written below the mount point of an unmounted disk; any_disk: wherever its path
  /// leads, since otherwise all would be lost.
  enum class Place : std::uint8_t { same_disk, any_disk };
  /// Called before something is written: creates a folder that somebody has removed and takes its
  /// lock again; rank 0 warns. Throws IoError on another disk, if `place` forbids that.
  void make_again_if_gone(Place place);

  /// Returns rank 0's text on all ranks.
  std::string from_first(const std::string& text);

  /// Throws on all ranks if `body` throws on any: code and message of the first such rank.
  template <typename Body>
  void fail_together(const Body& body) {
    const auto failure = comm::fail_together(communicator_, body);
    if (failure) throw Error(failure->code, failure->message());
  }

 private:
  /// Makes the folder where it is missing, and takes the lock of rank 0. Not collective.
  std::unique_ptr<OutputLock> make_and_lock();
  /// Takes this rank's part of the lock, after rank 0 has its own. Not collective.
  [[nodiscard]] std::unique_ptr<OutputLock> lock() const;
  [[nodiscard]] Beat beat_and_tell_of(std::chrono::milliseconds wait) const;
  /// Functions of rank 0 alone, not collective, up to make_again.
  /// Says what to do with checkpoints that are there although the options do not go on from them.
  void refuse_or_replace(const CheckpointOptions& options);
  void require_same_disk() const;
  void make_again();
  void probe();

  std::string path_;
  const RankContext& context_;
  std::string run_tag_;
  std::optional<Restart> restart_;
  PageWatch watch_;
  comm::Communicator& communicator_;
  const RunListeners& listeners_;
  PosixFileSystem files_;
  std::unique_ptr<OutputLock> lock_;
  std::uint64_t disk_ = 0;  ///< the file system of the folder
  std::vector<std::int64_t> replaced_;
};

}  // namespace strata::train
