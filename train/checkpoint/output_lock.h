// Ensures that an output folder has one run at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "core/beat.h"
#include "core/unique_fd.h"

namespace strata::train {

struct LockOwner {
  std::string host;
  std::int64_t pid = 0;
  std::string run_id;
};

/// The wait for a killed process, which holds its locks until the kernel has freed its memory.
inline constexpr std::chrono::milliseconds kDyingProcess{5000};

/// Held from construction to destruction, or until the process ends in any way. The file
/// ".strata-lock" stays and means nothing by itself.
///
/// Two bytes of it are locked (open file description locks, which network file systems know, too).
/// The owner locks the first exclusively, so that there is one run; all ranks of the run share the
/// second, so that no run begins while a rank of the one before lives and may still write.
class OutputLock {
 public:
  /// Takes rank 0's lock in a folder that exists. Waits up to `wait` for another run to end, and
  /// beats meanwhile. Throws HostError naming folder and owner if it does not end, or if the file
  /// system has no locks, and IoError if the file cannot be made.
  OutputLock(const std::string& output, const LockOwner& owner,
             std::chrono::milliseconds wait = kDyingProcess, const Beat& beat = {});

  /// Takes another rank's lock, once rank 0 has its own. Throws HostError if rank 0 has none.
  static OutputLock join(const std::string& output);

  /// True if a process that opens the lock file now meets this lock; false after the folder was
  /// removed, replaced or hidden by another. Throws IoError if that cannot be determined.
  [[nodiscard]] bool is_in_place() const;

 private:
  OutputLock(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  UniqueFd file_;
};

}  // namespace strata::train
