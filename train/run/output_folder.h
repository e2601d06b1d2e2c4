// The folder that a run writes its checkpoints to: made, claimed for this run, seen by all ranks.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.h"
#include "comm/together.h"
#include "core/file_system.h"
#include "core/rank_context.h"
#include "train/checkpoint/output_lock.h"
#include "train/config/options.h"
#include "train/run/console.h"

namespace strata::train {

/// All calls are collective but those marked.
class OutputFolder {
 public:
  /// Makes the folder, takes its lock (each rank a part) and removes what a broken run left there.
  /// Throws HostError when another run has it or ranks do not share it, InvalidArgument when it has
  /// checkpoints and nothing is said about resuming or replacing them. `path` may be empty: then
  /// nothing is made, and nothing will be written.
  OutputFolder(const CheckpointOptions& options, std::string path, const RankContext& context,
               comm::Communicator& communicator, Console& console);

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

  /// Before something is written there: makes a folder that somebody has removed; rank 0 says so.
  void make_again_if_gone();

  /// What rank 0 says.
  std::string from_first(const std::string& text);

  /// Throws on all ranks when `body` throws on one: the first rank's class and message.
  template <typename Body>
  void together(const Body& body) {
    const auto failure = comm::together(communicator_, body);
    if (failure)
      throw Error(failure->code, failure->messages[static_cast<std::size_t>(failure->rank)]);
  }

 private:
  /// Not collective: this rank's part; rank 0's comes first.
  [[nodiscard]] std::unique_ptr<OutputLock> lock() const;
  void probe();

  std::string path_;
  const RankContext& context_;
  std::string run_tag_;
  comm::Communicator& communicator_;
  Console& console_;
  PosixFileSystem files_;
  std::unique_ptr<OutputLock> lock_;
  std::vector<std::int64_t> replaced_;
};

}  // namespace strata::train
