#include "machine/operation_times.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace strata::machine {
namespace {

/// Returns the factor below and above which half of the measured time lies.
double weighted_median(std::vector<std::pair<double, std::int64_t>>& factors) {
  std::ranges::sort(factors);
  std::int64_t total = 0, before = 0;
  for (const auto& [factor, ns] : factors) total += ns;
  for (const auto& [factor, ns] : factors)
    if (2 * (before += ns) >= total) return factor;
  return 1;
}

}  // namespace

OperationTimes::OperationTimes(std::vector<OperationTime> times) : times_(std::move(times)) {
  std::ranges::stable_sort(times_, {}, &OperationTime::signature);
  std::vector<OperationTime> last;
  for (OperationTime& time : times_) {
    if (!last.empty() && last.back().signature == time.signature) last.pop_back();
    last.push_back(std::move(time));
  }
  times_ = std::move(last);
  find_families();
}

void OperationTimes::merge(const OperationTimes& more) {
  std::vector<OperationTime> both = times_;
  std::ranges::copy(more.times_, std::back_inserter(both));
  *this = OperationTimes(std::move(both));
}

std::optional<std::int64_t> OperationTimes::find(std::uint64_t signature) const {
  const auto at = std::ranges::lower_bound(times_, signature, {}, &OperationTime::signature);
  if (at == times_.end() || at->signature != signature) return {};
  return at->ns;
}

double OperationTimes::foreseen_ns(std::string_view operation, Resource resource, DType type,
                                   const Work& work, double guess_ns) const {
  const auto at = std::ranges::find_if(families_, [&](const Family& known) {
    return known.operation == operation && known.resource == resource && known.type == type;
  });
  if (at == families_.end())
    return resource == Resource::host ? host_slowness_ * guess_ns : guess_ns;
  const double lawful = at->law ? at->law->ns(work) : 0;
  if (lawful <= 0) return at->slowness * guess_ns;
  return std::max(lawful, std::min(guess_ns, at->least_ns_per_flop * work.flops));
}

void OperationTimes::find_families() {
  struct Measured {
    std::vector<std::pair<double, std::int64_t>> factors;
    std::vector<WorkTime> works;
    double least_ns_per_flop = std::numeric_limits<double>::infinity();
  };
  std::map<std::tuple<std::string, Resource, DType>, Measured> families;
  std::vector<std::pair<double, std::int64_t>> host_factors;
  for (const OperationTime& time : times_) {
    Measured& family = families[{time.operation, time.resource, time.type}];
    const auto ns = static_cast<double>(time.ns);
    family.factors.emplace_back(ns / static_cast<double>(time.guess_ns), time.ns);
    if (time.resource == Resource::host) host_factors.push_back(family.factors.back());
    family.works.push_back({time.work, ns});
    if (time.work.flops > 0)
      family.least_ns_per_flop = std::min(family.least_ns_per_flop, ns / time.work.flops);
  }
  host_slowness_ = weighted_median(host_factors);
  families_.clear();
  for (auto& [key, family] : families)
    families_.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key),
                         weighted_median(family.factors), fit_law(family.works),
                         std::isfinite(family.least_ns_per_flop) ? family.least_ns_per_flop : 0});
}

}  // namespace strata::machine
