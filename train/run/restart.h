// A start of a run that is not its first one: the launcher started the ranks again after a failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/rank_context.h"

namespace strata::train {

struct Restart {
  int attempt = 1;  ///< number of this start; the first one is 0
  std::string run_id;
  std::int64_t last_step = -1;  ///< the last step that earlier attempts were seen in; -1: not known
};

/// Nullopt for a first start, and under launchers that do not keep a run's id from start to start.
std::optional<Restart> restart_of(const RankContext& context);

/// Says what the run goes on from and which steps are lost: "attempt 2: goes on from step 40 of
/// this run; steps 41 to 57 are computed again".
std::string describe_own(const Restart& restart, std::int64_t step);
/// Says the same of a run that has saved nothing and begins after `step` as its options say.
/// `saves`: it has an output folder. Nothing is lost where no step was seen, as when fewer ranks
/// start because the first number did not fit.
std::string describe_anew(const Restart& restart, std::int64_t step, bool saves);

}  // namespace strata::train
