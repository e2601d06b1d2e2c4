#include "train/engine/kind_times.h"

#include <algorithm>
#include <string>
#include <utility>

namespace strata::train {

void KindTimes::add(const runtime::Instruction& in, std::int64_t ns) {
  const machine::Demand& demand = in.demand;
  if (demand.signature == 0) return;
  const auto [at, fresh] = kinds_.try_emplace(demand.signature);
  Kind& kind = at->second;
  if (fresh)
    kind = {{demand.signature, std::string(demand.operation), demand.resource, demand.type, 0, 0,
             machine::work_of(demand)},
            demand,
            in.collective.has_value(),
            {}};
  kind.runs_ns.push_back(ns);
}

machine::OperationTimes KindTimes::typical(const machine::Machine& machine) const {
  std::vector<machine::OperationTime> times;
  for (const auto& [signature, kind] : kinds_) {
    std::vector<std::int64_t> ns = kind.runs_ns;
    std::ranges::sort(ns);
    times.push_back(kind.time);
    times.back().ns =
        std::max<std::int64_t>(1, kind.of_collective ? ns.front() : ns[(ns.size() - 1) / 2]);
    times.back().guess_ns = machine::guessed_ns(machine, kind.demand);
  }
  return machine::OperationTimes(std::move(times));
}

}  // namespace strata::train
