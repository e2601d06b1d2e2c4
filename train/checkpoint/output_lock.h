// One run per output folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "core/unique_fd.h"

namespace strata::train {

struct LockOwner {
  std::string host;
  std::int64_t pid = 0;
  std::string run_id;
};

/// A process that was killed holds its locks until the kernel has taken its memory apart.
inline constexpr std::chrono::milliseconds kDyingProcess{5000};

/// Held from construction to destruction, or to the end of the process however it ends. The file
/// ".strata-lock" stays behind and means nothing by itself.
///
/// Two bytes of it are locked (open file description locks, which network file systems know, too):
/// the first by the owner, alone, so that there is one run; the second by all ranks of the run,
/// together, so that no run begins while a rank of the one before still lives and may write.
class OutputLock {
 public:
  /// Rank 0's. Waits up to `wait` for another run to end. Throws HostError naming the folder and
  /// the owner when that does not happen, IoError when the file cannot be made. The folder exists.
  OutputLock(const std::string& output, const LockOwner& owner,
             std::chrono::milliseconds wait = kDyingProcess);

  /// Another rank's, once rank 0 has its own. Throws HostError when rank 0 has none.
  static OutputLock join(const std::string& output);

  /// Says whether a process that opens the lock file now meets this lock: not after the folder was
  /// removed, replaced or hidden by another one. Throws IoError where that cannot be known.
  [[nodiscard]] bool is_in_place() const;

 private:
  OutputLock(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  UniqueFd file_;
};

}  // namespace strata::train
