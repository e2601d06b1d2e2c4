// The folder that a run writes its checkpoints to: made, claimed for this run, seen by all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/fail_together.h"
#include "core/file_system.h"
#include "core/rank_context.h"
#include "train/checkpoint/output_lock.h"
#include "train/config/options.h"
#include "train/run/run_listeners.h"

namespace strata::train {

/// All calls are collective but those marked.
class OutputFolder {
 public:
  /// Makes the folder, takes its lock (each rank a part) and removes what a broken run left there.
  /// Throws HostError when another run has it or ranks do not share it, InvalidArgument when it has
  /// checkpoints and nothing is said about resuming or replacing them. `path` may be empty: then
  /// nothing is made, and nothing will be written.
  OutputFolder(const CheckpointOptions& options, std::string path, const RankContext& context,
               comm::Communicator& communicator, const RunListeners& listeners);

  /// Not collective, as all up to first().
  [[nodiscard]] const std::string& path() const { return path_; }
  /// The run's id as names of files have it.
  [[nodiscard]] const std::string& run_tag() const { return run_tag_; }
  [[nodiscard]] FileSystem& files() { return files_; }
  [[nodiscard]] comm::Communicator& communicator() { return communicator_; }
  /// Is this rank 0?
  [[nodiscard]] bool first() const { return context_.rank == 0; }

  /// Steps of another run's checkpoints, which go once this run has one: on rank 0, and once.
  [[nodiscard]] std::vector<std::int64_t> take_replaced() { return std::exchange(replaced_, {}); }

  /// Where a folder may be made again: only where it was, so that what follows an unmounted disk is
  /// not written below its mount point; or wherever its path leads to, before all is lost.
  enum class Place : std::uint8_t { same_disk, any_disk };
  /// Before something is written there: makes a folder anew that somebody has removed, and takes
  /// its lock again; rank 0 says so. Throws IoError where it would lie on another disk than before.
  void make_again_if_gone(Place place);

  /// What rank 0 says.
  std::string from_first(const std::string& text);

  /// Throws on all ranks when `body` throws on one: the first rank's class and message.
  template <typename Body>
  void fail_together(const Body& body) {
    const auto failure = comm::fail_together(communicator_, body);
    if (failure) throw Error(failure->code, failure->message());
  }

 private:
  /// Not collective: this rank's part; rank 0's comes first.
  [[nodiscard]] std::unique_ptr<OutputLock> lock() const;
  /// Rank 0's, likewise.
  void require_same_disk() const;
  void make_again();
  void probe();

  std::string path_;
  const RankContext& context_;
  std::string run_tag_;
  comm::Communicator& communicator_;
  const RunListeners& listeners_;
  PosixFileSystem files_;
  std::unique_ptr<OutputLock> lock_;
  std::uint64_t disk_ = 0;  ///< the folder's file system
  std::vector<std::int64_t> replaced_;
};

}  // namespace strata::train
