#include "train/engine/kind_times.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace strata::train {
namespace {

/// A run that takes so many times the median was held up by something else.
constexpr std::int64_t kHeldUp = 3;

std::int64_t median_of(const std::vector<std::int64_t>& sorted) {
  return sorted[(sorted.size() - 1) / 2];
}

}  // namespace

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

template <typename TimeOf>
machine::OperationTimes KindTimes::times(const machine::Machine& machine,
                                         const TimeOf& time_of) const {
  std::vector<machine::OperationTime> times;
  for (const auto& [signature, kind] : kinds_) {
    std::vector<std::int64_t> ns = kind.runs_ns;
    std::ranges::sort(ns);
    times.push_back(kind.time);
    times.back().ns = std::max<std::int64_t>(1, time_of(kind, ns));
    times.back().guess_ns = machine::guessed_ns(machine, kind.demand);
  }
  return machine::OperationTimes(std::move(times));
}

machine::OperationTimes KindTimes::typical(const machine::Machine& machine) const {
  return times(machine, [](const Kind& kind, const std::vector<std::int64_t>& ns) {
    return kind.of_collective ? ns.front() : median_of(ns);
  });
}

machine::OperationTimes KindTimes::mean(const machine::Machine& machine) const {
  return times(machine, [](const Kind&, const std::vector<std::int64_t>& ns) {
    const std::int64_t held_up = kHeldUp * std::max<std::int64_t>(median_of(ns), 1);
    const auto end = std::ranges::lower_bound(ns, held_up);
    return std::accumulate(ns.begin(), end, std::int64_t{0}) / (end - ns.begin());
  });
}

}  // namespace strata::train
