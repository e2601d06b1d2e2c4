// What mlaunch says when ranks get nowhere: which rank is behind, what holds it, and what to do.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "launcher/control/hang_watch.h"
#include "launcher/group/process_state.h"
#include "launcher/report/evidence.h"

namespace strata::launcher {

/// What is seen of a rank that is to blame.
struct HangEvidence {
  int rank = 0;
  ProcessState process = {};
  std::vector<ThreadFacts> threads = {};
  std::string stacks = {};  ///< may be empty
};

/// Returns several lines without a newline at the end. `evidence`: of the first rank that is
/// behind, or of all that are held; those on other hosts are missing.
std::string hang_report(const Hang& hang, const std::vector<HangEvidence>& evidence);

/// Says why a rank that was killed does not end, and what to do.
std::string why_it_stays(pid_t pid, const HangEvidence& evidence);

}  // namespace strata::launcher
