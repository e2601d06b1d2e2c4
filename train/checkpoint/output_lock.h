// One run per output folder.
#pragma once

#include <cstdint>
#include <string>

#include "core/unique_fd.h"

namespace strata::train {

struct LockOwner {
  std::string host;
  std::int64_t pid = 0;
  std::string run_id;
};

/// Held from construction to destruction, or to the end of the process however it ends. The file
/// ".strata-lock" stays behind and means nothing by itself.
class OutputLock {
 public:
  /// Throws HostError naming the folder and the owner when another run has it, IoError when the
  /// file cannot be made. The folder exists.
  OutputLock(const std::string& output, const LockOwner& owner);

 private:
  UniqueFd file_;
};

}  // namespace strata::train
