// Writes files of a run in processes of their own. A file system that does not answer may hold who
// waits for it inside the kernel, where no signal ends the wait: a thread of mlaunch would keep
// mlaunch itself from ending.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "core/unique_fd.h"

namespace strata::launcher {

class ReportWriters {
 public:
  /// The first word of a writer's command line, which the run's id and a file's name follow.
  static constexpr const char* kWord = "--write-report";
  /// The last line that a writer prints once the file is there. Others say what is wrong.
  static constexpr const char* kWritten = "written";

  /// `program`: which of the writers are; an mlaunch.
  explicit ReportWriters(std::string program = "/proc/self/exe") : program_(std::move(program)) {}

  /// Starts to write `path`, which is the file `name` of the run. Throws HostError if no process
  /// can start.
  void start(const std::string& path, const std::string& run_id, const std::string& name,
             const std::string& text);

  /// Fate of a file.
  struct Ended {
    std::string path;
    std::string failure;  ///< one line; empty: the file is there
  };
  /// Returns those that have ended since the last call.
  [[nodiscard]] std::vector<Ended> take_ended();
  /// Adds what to poll for.
  void add_polls(std::vector<pollfd>& entries) const;
  /// Waits until all have ended; false: some have not within `limit`.
  [[nodiscard]] bool wait(std::chrono::milliseconds limit) const;
  [[nodiscard]] bool is_idle() const { return writers_.empty(); }

  /// Says which files are still being written, and by whom: "/a/b (process 12), /a/c (process 13)".
  [[nodiscard]] std::string unfinished() const;

 private:
  struct Writer {
    std::string path;
    pid_t pid = -1;    ///< for people: others may wait for the process
    UniqueFd process;  ///< its pidfd
    UniqueFd words;    ///< what it prints
  };

  const std::string program_;
  std::vector<Writer> writers_;  ///< those that have not ended, or have not been told of
};

}  // namespace strata::launcher
