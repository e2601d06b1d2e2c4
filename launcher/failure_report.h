// The last lines on the screen: which rank failed first, how, where, why, and what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/ending.h"

namespace strata::launcher {

/// Facts about one rank of the run.
struct RankFacts {
  std::string where;             ///< from its status page, empty: unknown
  std::string error;             ///< from its status page, empty: none
  std::optional<Ending> ending;  ///< empty: it has not ended
};

struct FailureFacts {
  int rank = 0;
  int ranks = 1;
  std::string program;
  Ending ending;
  std::string spawn_error;               ///< not empty: it never started
  std::string where;                     ///< from its status page, empty: unknown
  std::string error;                     ///< from its status page, empty: none
  std::string error_tail;                ///< the end of its standard error
  std::int64_t peak_rss_bytes = 0;       ///< 0: unknown
  std::int64_t out_of_memory_kills = 0;  ///< by the kernel on this machine during the run
  std::vector<RankFacts> others;         ///< by rank; the failed rank's entry is ignored
};

/// Several lines, the last with a newline too. Errors of other ranks come before that of the failed
/// one, a line each: equal ones are counted, and those that only blame a rank are left out when the
/// failed one is not such itself.
std::string failure_report(const FailureFacts& facts);

/// "0-2, 4" of sorted rank numbers.
std::string rank_list(const std::vector<int>& ranks);

}  // namespace strata::launcher
