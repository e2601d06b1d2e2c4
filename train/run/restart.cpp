#include "train/run/restart.h"

#include <fmt/core.h>

namespace strata::train {
namespace {

/// The steps after `step` that earlier attempts have begun.
std::string lost_after(std::int64_t step, std::int64_t last_step) {
  if (last_step <= step) return "";
  if (last_step == step + 1) return fmt::format("; step {} is computed again", last_step);
  return fmt::format("; steps {} to {} are computed again", step + 1, last_step);
}

}  // namespace

std::optional<Restart> restart_of(const RankContext& context) {
  if (context.attempt == 0 || context.started_by != "mlaunch") return {};
  return Restart{context.attempt, context.run_id, context.last_step};
}

std::string describe_own(const Restart& restart, std::int64_t step) {
  return fmt::format("attempt {}: goes on from step {} of this run{}", restart.attempt, step,
                     lost_after(step, restart.last_step));
}

std::string describe_anew(const Restart& restart, std::int64_t step, bool saves) {
  if (restart.last_step <= step)
    return fmt::format(
        "attempt {}: begins as the first attempt did; no step of this run was seen yet",
        restart.attempt);
  return fmt::format("attempt {}: {} and begins as the first attempt did{}", restart.attempt,
                     saves ? "this run has no checkpoint yet"
                           : "this run saves nothing, since no --output names a folder,",
                     lost_after(step, restart.last_step));
}

}  // namespace strata::train
