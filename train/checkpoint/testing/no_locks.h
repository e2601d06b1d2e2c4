// A file system without locks, as some network mounts are.
#pragma once

namespace strata::train {

/// While one lives, locks of open file descriptions fail with its error in this process.
class NoLocks {
 public:
  explicit NoLocks(int error);
  NoLocks(const NoLocks&) = delete;
  NoLocks& operator=(const NoLocks&) = delete;
  ~NoLocks();
};

}  // namespace strata::train
