#include "runtime/simulator/simulated_host.h"

#include <algorithm>

#include "core/check.h"

namespace strata::runtime {

void SimulatedHost::go_on(std::int64_t now_ns) {
  STRATA_CHECK(now_ns >= now_ns_, now_ns, now_ns_);
  for (Running& r : running_) r.left -= (now_ns - now_ns_) * r.rate;
  now_ns_ = now_ns;
}

void SimulatedHost::start(int slot, const InstructionWork& work, std::int64_t now_ns) {
  go_on(now_ns);
  const auto at = std::ranges::lower_bound(running_, slot, {}, &Running::slot);
  STRATA_CHECK(at == running_.end() || at->slot != slot, slot);
  running_.insert(at, {slot, &work.shares, work.alone_ns * kFullRate, 0});
}

void SimulatedHost::advance(std::int64_t now_ns, std::vector<int>& ended) {
  go_on(now_ns);
  std::erase_if(running_, [&](const Running& r) {
    if (r.left <= 0) ended.push_back(r.slot);
    return r.left <= 0;
  });
}

std::int64_t SimulatedHost::next_end_ns() {
  shares_.clear();
  for (const Running& r : running_) shares_.push_back(r.shares);
  const std::vector<std::int64_t>& rates = fair_rates_.of(shares_);
  std::int64_t next = kNever;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Running& r = running_[i];
    r.rate = rates[i];
    const std::int64_t left = std::max<std::int64_t>(0, r.left);
    next = std::min(next, now_ns_ + (left + r.rate - 1) / r.rate);
  }
  return next;
}

}  // namespace strata::runtime
