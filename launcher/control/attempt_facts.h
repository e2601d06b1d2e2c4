// What a host knows of an attempt once none of its ranks is left.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/status_page.h"
#include "launcher/control/ending.h"
#include "launcher/control/save_failure.h"

namespace strata::launcher {

/// Facts about one rank, most of them from its status page.
struct EndedRank {
  std::optional<Ending> ending;   ///< nullopt: it was killed and does not end
  std::string where = {};         ///< "step 12, backward, ..."; empty: unknown
  std::string error = {};         ///< its first error; empty: none
  bool done = false;              ///< it had done and saved its work, whatever its exit code
  std::int64_t step = -1;         ///< -1: none
  Phase phase = Phase::starting;  ///< in which it was at the end
  std::int64_t instruction = -1;  ///< index in the Program that ran; -1: none
  std::string instruction_name = {};
  std::int64_t collective = 0;       ///< number of the one begun last; 0: none
  std::string collective_name = {};  ///< of the one under way; empty: none
  std::int64_t peak_rss_bytes = 0;   ///< 0: unknown
  double phase_seconds = 0;          ///< for which it was in its phase at the end; 0: unknown
  std::optional<SaveFailure> save_failure = {};  ///< that was not made good until its end
  std::string stays = {};  ///< why it was killed and does not end; empty: it has ended

  /// True if it ended because it could not save, as its error says. A save that failed earlier, and
  /// after which training went on, has no part in its end.
  [[nodiscard]] bool ended_by_failed_save() const {
    return save_failure && error.find(save_failure->describe()) != std::string::npos;
  }
};

struct AttemptFacts {
  /// A rank of the run, and what is told of the rank that failed first on the host.
  struct Failed {
    int rank = 0;
    std::string spawn_error;  ///< not empty: its program could not be started
    std::string error_tail;   ///< end of its standard error
  };
  int exit_code = 0;             ///< that mlaunch would end with if this host were alone
  bool was_asked = false;        ///< all is done, or stopped on request
  bool all_stopped = false;      ///< all ranks ended with code 75, as those do that have saved
  int user_signal = 0;           ///< with which the user ended the run; 0: none
  bool kill_asked = false;       ///< by the user, before their time was over
  bool left_behind = false;      ///< what was killed does not end: others must not start
  std::optional<Failed> failed;  ///< nullopt: no rank failed by itself
  std::vector<EndedRank> ranks;  ///< of this host, in order
  std::int64_t out_of_memory_kills = 0;  ///< by the kernel of this host during the attempt
  std::int64_t committed = -1;           ///< step of the newest checkpoint; -1: none
  std::string checkpoint;                ///< its folder
};

}  // namespace strata::launcher
