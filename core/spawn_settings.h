// How another program is started: what it gets for its descriptors, and signals as at a login.
#pragma once

#include <spawn.h>

#include <string>
#include <vector>

namespace strata {

/// Owns the two attribute objects of posix_spawn. Signals that this process blocks or ignores are
/// neither blocked nor ignored in the program.
class SpawnSettings {
 public:
  /// Throws HostError if the system has no memory for it, as all members do.
  SpawnSettings();
  ~SpawnSettings();
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  /// Gives the program the descriptor `fd` under the number `as`.
  void connect(int fd, int as);
  /// Opens a file for it (flags as for open(2)) under the number `as`.
  void open(const char* path, int flags, int as);
  /// Starts a program, which is looked for in $PATH if the first word has no slash, in this
  /// process's environment. Returns 0 and sets `pid`, or returns an error number.
  [[nodiscard]] int start(const std::vector<std::string>& command, pid_t& pid) const;

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace strata
