#include "runtime/schedule/schedule_rates.h"

#include <algorithm>

namespace strata::runtime {
namespace {

/// Rounds down, so that shares that add up to 1 as real numbers do not slow one another down.
std::int64_t in_parts(double share) {
  return std::max<std::int64_t>(1,
                                static_cast<std::int64_t>(share * static_cast<double>(kFullRate)));
}

}  // namespace

std::int64_t FairRates::full_at(std::size_t resource) const {
  return wanted_[resource] == 0
             ? kFullRate
             : std::max<std::int64_t>(1, left_[resource] * kFullRate / wanted_[resource]);
}

const std::vector<std::int64_t>& FairRates::of(
    const std::vector<const std::vector<ResourceShare>*>& running) {
  rates_.assign(running.size(), 0);
  std::ranges::fill(left_, kFullRate);
  for (;;) {
    std::ranges::fill(wanted_, 0);
    for (std::size_t i = 0; i < running.size(); ++i)
      if (rates_[i] == 0)
        for (const ResourceShare& s : *running[i]) wanted_[s.resource] += in_parts(s.share);
    std::int64_t level = kFullRate;
    for (std::size_t r = 0; r < left_.size(); ++r) level = std::min(level, full_at(r));
    if (level == kFullRate) break;
    const auto is_full = [&](const ResourceShare& s) { return full_at(s.resource) == level; };
    staying_.clear();
    for (std::size_t i = 0; i < running.size(); ++i)
      if (rates_[i] == 0 && std::ranges::any_of(*running[i], is_full)) staying_.push_back(i);
    for (const std::size_t i : staying_) {
      rates_[i] = level;
      for (const ResourceShare& s : *running[i])
        left_[s.resource] =
            std::max<std::int64_t>(0, left_[s.resource] - level * in_parts(s.share) / kFullRate);
    }
  }
  for (std::int64_t& rate : rates_)
    if (rate == 0) rate = kFullRate;
  return rates_;
}

}  // namespace strata::runtime
