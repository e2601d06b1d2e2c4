// The status of a run, as `mlaunch status --json` prints it (docs/formats/status.md).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "launcher/control/hosts_view.h"
#include "launcher/control/rank_state.h"

namespace strata::launcher {

struct RunStatus {
  std::string run_id;
  std::string program;
  std::string host;
  pid_t process = 0;                          ///< of mlaunch
  std::optional<std::int64_t> process_start;  ///< its own (process_start.h); nullopt: not known
  std::chrono::system_clock::time_point started_at;
  double seconds = 0;  ///< since then, by a clock that nobody sets
  int attempt = -1;    ///< from 0; -1: none has begun
  int restarts = 0;    ///< in the last hour
  int most_restarts = 0;
  int all_restarts = 0;            ///< since the start
  int world = 0;                   ///< ranks of the attempt under way, or of the last one
  int regroupings = 0;             ///< starts after the first that followed no failure
  std::int64_t grace_seconds = 0;  ///< that ranks get to stop by themselves
  bool stopping = false;           ///< it was asked to end
  std::string log_folder;          ///< empty: logs are not kept
  std::int64_t committed = -1;     ///< step of the run's newest checkpoint; -1: none
  std::string checkpoint;          ///< its folder
  std::int64_t lost_steps = 0;     ///< that restarts threw away
  /// Time since the run saw its newest checkpoint, in seconds, and the part of the run's time that
  /// went into steps that count; NaN: not known.
  double checkpoint_age = std::numeric_limits<double>::quiet_NaN();
  double goodput = std::numeric_limits<double>::quiet_NaN();
  /// A rank, and the host on which it is.
  struct Rank {
    std::string host;
    RankState state;
    /// Time since it was seen to get something done, in seconds; NaN: not known.
    double progress_age = std::numeric_limits<double>::quiet_NaN();
  };
  std::optional<WaitingView> waiting;  ///< nullopt: it does not wait for hosts
  std::vector<HostView> hosts;         ///< in the order of their numbers
  std::vector<Rank> ranks;             ///< in the order of their numbers; none between two attempts
};

/// Returns one line of JSON, without its end.
std::string status_json(const RunStatus& status);

/// Returns what `mlaunch status --json` prints of one run, of which this is the status_json().
std::string runs_json(const std::string& status);

struct StopAnswer {
  std::string run_id;
  bool was_asked = false;  ///< it had been asked before
  std::chrono::milliseconds grace{0};
  std::chrono::milliseconds held_limit{0};  ///< after which ranks that are held are killed
  std::vector<RankState> ranks;
};

/// What is answered to a request to stop, in one line.
std::string stop_json(const StopAnswer& answer);

/// Ranks that were asked to end, did not, and were killed.
struct KilledRanks {
  std::vector<int> ranks = {};
  bool on_request = false;  ///< the user asked for it, and did not wait until their time was over
};

struct RunEnding {
  int exit_code = 0;
  std::chrono::system_clock::time_point ended_at;
  std::int64_t committed = -1;  ///< step of the newest checkpoint; -1: none
  std::string checkpoint;       ///< its folder
  KilledRanks killed = {};
};

/// What is told of a run that has ended, in one line.
std::string ended_json(const RunStatus& status, const RunEnding& ending);

/// What will be known of a run if its mlaunch is killed after `seen_at`, in one line.
std::string record_json(const RunStatus& status, std::chrono::system_clock::time_point seen_at);

}  // namespace strata::launcher
