#include "launcher/views/output_of_hosts.h"

#include <fmt/core.h>

#include <set>
#include <utility>

namespace strata::launcher {

OutputOfHosts::Wanted OutputOfHosts::want(TimePoint now, std::optional<int> rank,
                                          const std::vector<Host>& hosts) {
  Wanted wanted;
  for (const Host& host : hosts) {
    if (rank && (*rank < host.first_rank || *rank >= host.first_rank + host.ranks)) continue;
    State& state = hosts_[host.host];
    if (state.agent != host.agent) state = {.agent = host.agent};
    if (state.whole && now >= *state.whole + kFresh) state.whole.reset();
    if (!state.whole) wanted.waiting_for.push_back(host.shown);
    const bool is_asked = state.asked && now < *state.asked + kLost;
    const bool has_told = !state.more && state.whole && now < *state.whole + kBetweenFetches;
    if (is_asked || has_told) continue;
    state.asked = now;
    wanted.fetches.push_back({host.host, host.agent, state.next});
  }
  return wanted;
}

void OutputOfHosts::take(TimePoint now, const std::string& host, const std::string& agent,
                         RecentOutput::Piece piece) {
  const auto found = hosts_.find(host);
  if (found == hosts_.end() || found->second.agent != agent) return;
  State& state = found->second;
  // An answer that was believed to be lost may come late, and an agent tells its last lines
  // unasked.
  if (piece.next - piece.dropped - piece.lines.size() != state.next) return;
  // Lines that were gone when somebody looked first are missed by nobody.
  if (std::exchange(state.began, true) && piece.dropped > 0) tell_of_gap(piece);
  if (!state.goal) state.goal = piece.end;
  if (piece.next >= *state.goal) {
    state.whole = now;
    state.goal.reset();
  }
  state.next = piece.next;
  state.more = piece.more();
  state.asked.reset();
  for (OutputLine& line : piece.lines) output_.add(std::move(line));
}

/// The agent does not know whose lines have gone: probably of those that have others here.
void OutputOfHosts::tell_of_gap(const RecentOutput::Piece& piece) {
  std::set<int> ranks;
  for (const OutputLine& line : piece.lines)
    if (ranks.insert(line.rank).second)
      output_.add({line.rank, line.attempt, OutputKind::standard_error,
                   fmt::format("mlaunch: {} lines are gone: its host prints more than can be sent",
                               piece.dropped)});
}

}  // namespace strata::launcher
