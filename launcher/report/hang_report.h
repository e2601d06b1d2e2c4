// What mlaunch tells of ranks that get nowhere: what holds them, and what to do.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "launcher/control/hang_watch.h"
#include "launcher/group/process_state.h"
#include "launcher/report/evidence.h"

namespace strata::launcher {

/// What is seen of a rank that is to blame, or waits for one that is.
struct HangEvidence {
  int rank = 0;
  bool waits = false;      ///< it is not to blame
  std::string where = {};  ///< its last events, as its status page has them; may be empty
  ProcessState process = {};
  std::vector<ThreadFacts> threads = {};
  std::string stacks = {};  ///< may be empty
};

/// Returns several lines without a newline at the end, for a report. `evidence`: of ranks of this
/// host. Lines name ranks if they are about several of the run.
std::string describe_evidence(const Hang& hang, const std::vector<HangEvidence>& evidence);

/// Says what to do. `evidence`: of the first rank that is behind, or of all that are held; those on
/// other hosts are missing.
std::string hang_advice(const Hang& hang, const std::vector<HangEvidence>& evidence);

/// Says why a rank that was killed does not end, and what to do.
std::string why_it_stays(pid_t pid, const HangEvidence& evidence);

}  // namespace strata::launcher
