// Shows a coordinator's run to those who ask: its hosts, and what it waits for.
#include <fmt/core.h>

#include <algorithm>

#include "launcher/control/coordinator.h"

namespace strata::launcher {

std::vector<Coordinator::RankOfHost> Coordinator::ranks() const {
  std::vector<RankOfHost> ranks;
  for (const Host& host : hosts_)
    if (is_in_attempt(host))
      for (const RankState& state : host.ranks) ranks.push_back({shown(host), state});
  std::ranges::sort(ranks, {}, [](const RankOfHost& one) { return one.state.rank; });
  return ranks;
}

Coordinator::TimePoint Coordinator::states_since() const {
  TimePoint since = now_;
  for (const Host& host : hosts_)
    if (is_in_attempt(host) && !host.is_over && host.has_ranks)
      since = std::min(since, host.beat_came);
  return since;
}

std::vector<Coordinator::AgentOfHost> Coordinator::agents() const {
  std::vector<AgentOfHost> agents;
  for (const Host& host : hosts_)
    if (is_in_attempt(host) && host.connected)
      agents.push_back({host.name, host.agent, shown(host), placement_->first_rank(host.node),
                        placement_->ranks_of(host.node)});
  return agents;
}

std::string_view Coordinator::state_of(const Host& host) const {
  const std::string_view with_ranks = host.is_silent    ? kIsSilent
                                      : host.is_leaving ? kIsLeaving
                                                        : kHasRanks;
  if (state_ == State::running && is_in_attempt(host)) return with_ranks;
  if (host.agent.empty()) return host.has_left ? kHasLeft : kIsMissing;
  if (!has_lease(host)) return kIsLost;
  if (state_ == State::ending && is_in_attempt(host)) return with_ranks;
  if (can_do_without_some() && failures_of(host) >= kMostFailures) return kIsLeftOut;
  return state_ == State::gathering ? kIsReady : kIsSpare;
}

/// Says why nothing comes from a host; "": something does, or it has not come yet.
std::string Coordinator::why_it_is_lost(const Host& host, std::string_view state) const {
  if (state != kIsLost && state != kIsSilent) return "";
  return fmt::format("{}no sign of life for {} s",
                     host.connected ? "" : std::string(kItsConnectionBroke) + "; ",
                     (now_ - host.last_beat) / std::chrono::seconds(1));
}

/// True if a host of this number was refused, and none is there.
bool Coordinator::is_refused(const Host& host) const {
  const std::string_view state = state_of(host);
  return (state == kIsMissing || state == kIsLost || state == kHasLeft) &&
         std::ranges::find(refused_, host.name, &HostRefused::host) != refused_.end();
}

std::vector<HostView> Coordinator::hosts() const {
  std::vector<HostView> views;
  std::deque<HostRefused> refused = refused_;
  const auto add_refused = [&views](const HostRefused& one) {
    views.push_back({one.host, one.host_name, one.address, 0, 0, kIsRefused, one.why});
  };
  for (const Host& host : hosts_) {
    const std::string_view state = state_of(host);
    if (is_refused(host)) {
      const auto instead = std::ranges::find(refused, host.name, &HostRefused::host);
      add_refused(*instead);
      refused.erase(instead);
      continue;
    }
    const bool has_ranks = state == kHasRanks || state == kIsSilent || state == kIsLeaving;
    const int slots = state == kIsMissing ? 0 : host.slots;
    views.push_back({host.name, host.host_name, host.address, slots,
                     has_ranks ? placement_->ranks_of(host.node) : 0, state,
                     why_it_is_lost(host, state)});
  }
  for (const HostRefused& one : refused) add_refused(one);
  for (const std::string& address : strangers_)
    views.push_back({"", "", address, 0, 0, kIsRefused, why_strangers_are_refused()});
  return views;
}

std::optional<WaitingView> Coordinator::waiting(TimePoint now) const {
  if (state_ != State::gathering || hosts_.size() == 1) return {};
  return WaitingView{.there = static_cast<int>(std::ranges::count_if(
                         hosts_, [this](const Host& host) { return is_free(host); })),
                     .needed = settings_.least_hosts,
                     .all = static_cast<int>(hosts_.size()),
                     .since = now - gathering_since_,
                     .limit = gathers_until() - gathering_since_,
                     .missing = hosts_that_miss(Missing::not_refused),
                     .refused = hosts_that_miss(Missing::refused)};
}

}  // namespace strata::launcher
