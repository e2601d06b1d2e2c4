// The last lines on the screen: which rank failed first, how, where, why, and what to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/control/ending.h"

namespace strata::launcher {

/// Facts about a rank of the run.
struct RankFacts {
  std::string where;             ///< read from its status page; empty: unknown
  std::string error;             ///< read from its status page; empty: none
  std::optional<Ending> ending;  ///< nullopt: it has not ended
  double phase_seconds = 0;      ///< for which it was in its phase; 0: unknown
};

struct FailureFacts {
  int rank = 0;
  int ranks = 1;
  bool is_common = false;  ///< all ranks tell one error that is of none of them alone
  std::string host;        ///< where the rank was, or all of them; empty: the only one
  std::string program;
  Ending ending;
  std::string spawn_error;               ///< not empty: the rank never started
  std::string where;                     ///< read from its status page; empty: unknown
  std::string error;                     ///< read from its status page; empty: none
  std::string lost_save;                 ///< which could not be written, and why; empty: none
  std::string error_tail;                ///< end of its standard error
  std::int64_t peak_rss_bytes = 0;       ///< 0: unknown
  double phase_seconds = 0;              ///< as in RankFacts
  std::int64_t out_of_memory_kills = 0;  ///< kills by the kernel on this machine during the run
  std::string resume;                    ///< how to go on; empty: there is nothing to say
  std::string kept;                      ///< file of the report for programs; empty: not to be said
  std::vector<RankFacts> others;         ///< index: rank; the failed rank's entry is ignored
};

/// Returns several lines; each ends with a newline. Where a rank ended with 75 since it could not
/// save, the first one says so, and blames no other rank. Errors of other ranks come before that of
/// the failed one, a line each. Equal errors are counted. Errors that only blame a peer are left
/// out, unless the failed rank's error does so, too. Where all ranks failed alike the first line
/// says so and nothing else of the others is told. Times in a phase are told from a second on.
std::string failure_report(const FailureFacts& facts);

/// Says what to do about the failed rank; "": nobody knows.
std::string failure_advice(const FailureFacts& facts);

/// Says how a run goes on that has saved `step` in `checkpoint`; "" if it has saved nothing.
std::string resume_text(std::int64_t step, const std::string& checkpoint);

/// Appends "  name    first line\n          second line\n"; nothing for an empty text. Blanks
/// control characters.
void add_field(std::string& report, std::string_view name, const std::string& text);

/// Formats sorted rank numbers: "0-2, 4".
std::string rank_list(const std::vector<int>& ranks);

}  // namespace strata::launcher
