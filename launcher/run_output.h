// What mlaunch and the ranks of this host print: on the screen, in memory for those who ask, and in
// files where --log-dir names a folder.
#pragma once

#include <poll.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/attempt.h"
#include "launcher/command/run.h"
#include "launcher/group/signals.h"
#include "launcher/output/log_folder.h"
#include "launcher/output/recent_output.h"
#include "launcher/output/screen.h"
#include "launcher/output/unread_output.h"

namespace strata::launcher {

class RunOutput {
 public:
  explicit RunOutput(const Options& options);
  RunOutput(const RunOutput&) = delete;
  RunOutput& operator=(const RunOutput&) = delete;

  [[nodiscard]] Screen& screen() { return screen_; }
  [[nodiscard]] RecentOutput& recent() { return recent_; }
  /// Null: --log-dir is not given.
  [[nodiscard]] LogFolder* logs() { return logs_ ? &*logs_ : nullptr; }
  /// Folder of the logs; empty: none are kept.
  [[nodiscard]] std::string log_path() const { return logs_ ? logs_->path() : ""; }

  /// Makes the folder of the run's logs, once, if one is asked for. Throws as LogFolder does.
  void keep_logs(const Run& run);
  /// Call it when the run turns out to be another one, which goes on here: its logs are kept with
  /// what there is of it.
  void take_up(const std::string& run_id);
  /// Says a line of mlaunch itself.
  void say(const std::string& text) { screen_.say("mlaunch: " + text); }
  /// Writes a line into the log that stands on no screen.
  void note(const std::string& text) {
    if (logs_) logs_->note(text);
  }
  void begin_attempt(const Placement& placement);
  void end_attempt();

  /// Adds what to poll for: outputs that wait for their readers.
  void add_polls(std::vector<pollfd>& entries);
  /// Writes as much as the readers take. The ranks of one that has gone go on, and that is said
  /// once.
  void write();
  /// Writes all: without a limit of time, unless `is_short` or a signal comes that ends mlaunch.
  /// Returns whether time has become short.
  [[nodiscard]] bool write_last_words(bool is_short, SignalQueue& signals);

  /// Returns mlaunch's exit code after a run that has ended with `run_code`: of a run that is done,
  /// it is that of a failed write where standard output did not take all, which is said.
  [[nodiscard]] int exit_code_after(int run_code);

  /// Returns a piece of what was printed here from a line on, for the run's coordinator.
  [[nodiscard]] RecentOutput::Piece piece_for_coordinator(std::uint64_t from);
  /// Returns the lines since then, if it asked lately: the run may end before it asks for them.
  [[nodiscard]] std::optional<RecentOutput::Piece> last_piece_for_coordinator();

 private:
  struct Sent {
    TimePoint when;
    std::uint64_t next = 0;
  };

  RecentOutput recent_;
  Screen screen_;
  std::optional<LogFolder> logs_;
  std::optional<Sent> sent_;  ///< of recent_, to a coordinator that asked for it
  bool error_told_[2] = {false, false};
  UnreadOutput unread_[2];
};

}  // namespace strata::launcher
