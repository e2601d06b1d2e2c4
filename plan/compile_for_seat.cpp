#include "plan/compile_for_seat.h"

#include <algorithm>
#include <utility>

#include "plan/widest_seat.h"

namespace strata::plan {
namespace {

/// Raises the limit that `shortage` names. Returns false if it is not one of the search, or may not
/// be raised so far.
bool raise_limit(runtime::Plan& plan, const runtime::Shortage& shortage,
                 const runtime::Plan& asked) {
  const auto tier = static_cast<std::size_t>(shortage.tier);
  std::int64_t& limit = plan.budget_bytes[tier];
  const std::int64_t most = asked.budget_bytes[tier];
  if (shortage.budget_bytes != limit || limit >= shortage.floor_bytes) return false;
  if (shortage.floor_bytes > most) return false;
  const std::int64_t more = std::min(2 * (shortage.floor_bytes - limit), most - limit);
  limit += more;
  // A device that is the host takes them from it.
  if (shortage.tier == runtime::Tier::device && compile::shares_host_memory(asked))
    plan.host_bytes -= more;
  return true;
}

}  // namespace

compile::Compiled compile_for_seat(const compile::TrainingModel& model, runtime::Plan plan,
                                   const runtime::Plan& asked, const machine::Machine& machine,
                                   const comm::MeshSeat& where, compile::Effort effort) {
  std::int64_t work = 0;
  for (;;) {
    compile::Compiled found = compile::compile(model, plan, machine, where, effort);
    work += std::exchange(found.work, 0);
    const bool again = found.fit.shortage && widest_seat(where) != where &&
                       raise_limit(plan, *found.fit.shortage, asked);
    if (again) continue;
    found.work = work;
    return found;
  }
}

}  // namespace strata::plan
