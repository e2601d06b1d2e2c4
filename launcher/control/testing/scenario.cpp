#include "launcher/control/testing/scenario.h"

#include <fmt/format.h>
#include <signal.h>

#include <array>

#include "launcher/control/testing/draws.h"

namespace strata::launcher::simulation {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = Fault::Kind;

constexpr std::array kKindNames{
    "broken stream", "deaf agent",         "unheard agent",       "partition",
    "crashed rank",  "rank out of memory", "hanging rank",        "slowed rank",
    "unread output", "crashed agent",      "second agent",        "crashed host",
    "paused host",   "paused coordinator", "crashed coordinator", "full disk",
    "held lock",     "user signal",        "host told to end"};

double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

HostClock draw_clock(Draws& draws) {
  constexpr std::int64_t kMostOff = 50'000;  // 5 %
  // The ends matter most: two clocks that drift apart as fast as is allowed for.
  const std::int64_t off = draws.chance(50) ? draws.between(-kMostOff, kMostOff)
                                            : (draws.chance(50) ? kMostOff : -kMostOff);
  return {draws.between(Duration(0), seconds(100'000)), off};
}

void draw_size(Scenario& scenario, Draws& draws) {
  scenario.in_one_process = draws.chance(8);
  const auto hosts = scenario.in_one_process ? 1 : draws.between(1, 4);
  if (hosts > 1 && draws.chance(50)) {
    scenario.worlds = {1};
    for (const int world : {2, 3, 4, 5, 6, 8, 12})
      if (draws.chance(60)) scenario.worlds.push_back(world);
  }
  for (int host = 0; host < hosts; ++host) {
    scenario.slots.push_back(static_cast<int>(draws.between(1, 3)));
    const bool is_late = draws.chance(scenario.worlds.empty() ? 8 : 35);
    const Duration soon = draws.between(Duration(0), seconds(3));
    scenario.first_agents.push_back(is_late ? draws.between(Duration(0), seconds(80)) : soon);
    scenario.clocks.push_back(draw_clock(draws));
  }
  scenario.coordinator_on_host_0 = scenario.in_one_process || draws.chance(50);
  scenario.clocks.push_back(scenario.coordinator_on_host_0 ? scenario.clocks[0]
                                                           : draw_clock(draws));
  const bool is_elastic = !scenario.worlds.empty();
  const bool needs_all = !is_elastic && draws.chance(50);
  scenario.least_hosts = static_cast<int>(needs_all ? hosts : draws.between(1, hosts));
  scenario.limits.most_restarts = static_cast<int>(draws.between(0, 8));
  scenario.limits.without_commit = draws.chance(60);
  scenario.steps = draws.between(5, is_elastic ? 250 : 60);
  scenario.step_time = draws.between(milliseconds(100), milliseconds(700));
  scenario.commit_every = draws.between(1, 6);
  scenario.hang_limit = seconds(draws.between(4, draws.chance(60) ? 10 : 40));
  if (draws.chance(50)) scenario.lost_lock = draws.between(seconds(5), seconds(90));
}

NetworkTraits draw_network(Draws& draws) {
  NetworkTraits network;
  const std::vector<Duration> delays{milliseconds(1), milliseconds(20), milliseconds(300)};
  network.longest_delay = draws.one_of(delays);
  if (draws.chance(30)) network.slow_percent = static_cast<int>(draws.between(1, 10));
  if (draws.chance(30)) network.twice_percent = static_cast<int>(draws.between(1, 20));
  if (draws.chance(30)) network.reordered_percent = static_cast<int>(draws.between(1, 20));
  return network;
}

std::optional<FailingRank> draw_failing_rank(const Scenario& scenario, Draws& draws) {
  if (!draws.chance(15)) return {};
  using Way = FailingRank::Way;
  const std::vector<int> codes{1, 1, 1, 2, 65, 70, 78, 93};
  FailingRank failing;
  failing.way = draws.one_of(
      std::vector{Way::exits, Way::exits, Way::exits, Way::cannot_start, Way::is_out_of_memory});
  int world = 0;
  for (const int slots : scenario.slots) world += slots;
  failing.rank = static_cast<int>(draws.between(0, world - 1));
  if (failing.way != Way::cannot_start && draws.chance(80))
    failing.step = draws.between(1, scenario.steps);
  failing.exit_code = draws.one_of(codes);
  failing.attempts = static_cast<int>(draws.between(1, 6));
  return failing;
}

/// Draws a kind that makes sense where the coordinator is in the agent's process, or elsewhere.
Kind draw_kind(const Scenario& scenario, Draws& draws) {
  constexpr std::array kLocal{Kind::crashed_rank, Kind::rank_out_of_memory, Kind::hanging_rank,
                              Kind::slowed_rank,  Kind::unread_output,      Kind::paused_host,
                              Kind::full_disk,    Kind::held_lock,          Kind::user_signal};
  if (scenario.in_one_process)
    return kLocal[static_cast<std::size_t>(draws.between(0, kLocal.size() - 1))];
  if (draws.chance(97)) {
    const Kind kind = static_cast<Kind>(draws.between(0, kKindNames.size() - 1));
    const bool is_rare = kind == Kind::crashed_coordinator || kind == Kind::user_signal ||
                         (kind == Kind::host_told_to_end && scenario.worlds.empty());
    if (!is_rare || draws.chance(40)) return kind;
  }
  return Kind::broken_stream;
}

Duration draw_length(Kind kind, Draws& draws) {
  const bool comes_back = draws.chance(80);
  switch (kind) {
    case Kind::paused_host:
    case Kind::paused_coordinator:
      return draws.between(milliseconds(200), draws.chance(70) ? seconds(9) : seconds(30));
    case Kind::crashed_coordinator:
      return comes_back
                 ? draws.between(milliseconds(200), draws.chance(70) ? seconds(6) : seconds(40))
                 : kForever;
    case Kind::crashed_host:
      return comes_back ? draws.between(seconds(4), seconds(40)) : kForever;
    case Kind::crashed_agent:
    case Kind::second_agent:
    case Kind::host_told_to_end:
      return comes_back ? draws.between(seconds(1), seconds(12)) : kForever;
    case Kind::slowed_rank:
    case Kind::unread_output:
      return draws.between(seconds(1), seconds(90));
    case Kind::held_lock:
      return draws.between(seconds(1), draws.chance(70) ? seconds(20) : seconds(150));
    case Kind::full_disk:
      return draws.between(seconds(1), seconds(30));
    default:
      return comes_back ? draws.between(milliseconds(100), seconds(12)) : kForever;
  }
}

/// Faults come together more often than chance has it: each may follow soon on the one before, or
/// meet the same host again.
std::vector<Fault> draw_faults(const Scenario& scenario, Draws& draws) {
  std::vector<Fault> faults;
  const Duration length = scenario.steps * scenario.step_time + seconds(20);
  Time last{draws.between(Duration(0), length)};
  int host = static_cast<int>(draws.between(0, scenario.hosts() - 1));
  for (auto left = draws.between(0, 12); left > 0; --left) {
    if (!draws.chance(40)) host = static_cast<int>(draws.between(0, scenario.hosts() - 1));
    last = draws.chance(60) ? last + draws.between(Duration(0), seconds(8))
                            : Time(draws.between(Duration(0), length));
    Fault fault{.kind = draw_kind(scenario, draws), .time = last, .host = host};
    if (draws.chance(15)) {  // while ranks start
      fault.attempt = static_cast<int>(draws.between(0, 3));
      fault.time = Time(draws.between(Duration(0), milliseconds(400)));
    }
    fault.lasts = draw_length(fault.kind, draws);
    fault.number = draws.one_of(std::vector{SIGINT, SIGTERM, SIGUSR1});
    faults.push_back(fault);
  }
  return faults;
}

}  // namespace

Scenario draw_scenario(std::uint64_t seed) {
  Draws draws(seed);
  Scenario scenario{.seed = seed};
  draw_size(scenario, draws);
  if (!scenario.in_one_process) scenario.network = draw_network(draws);
  scenario.failing = draw_failing_rank(scenario, draws);
  scenario.faults = draw_faults(scenario, draws);
  return scenario;
}

std::string describe(const Fault& fault) {
  std::string text =
      fmt::format("{}, host {}", kKindNames.at(static_cast<std::size_t>(fault.kind)), fault.host);
  if (fault.attempt >= 0) text += fmt::format(", in attempt {}", fault.attempt);
  if (fault.kind == Kind::user_signal) return text + fmt::format(", signal {}", fault.number);
  return text + (fault.lasts == kForever ? ", for ever"
                                         : fmt::format(", {:.3f} s", in_seconds(fault.lasts)));
}

std::string describe(const Scenario& scenario) {
  std::string text = fmt::format(
      "seed {}: {} hosts, at least {}, {} steps of {:.3f} s, a commit every {}, {} restarts{}{}{}, "
      "locks of lost hosts last {:.3f} s",
      scenario.seed, scenario.hosts(), scenario.least_hosts, scenario.steps,
      in_seconds(scenario.step_time), scenario.commit_every, scenario.limits.most_restarts,
      scenario.limits.without_commit ? " even without a commit" : "",
      scenario.in_one_process ? ", in one process" : "",
      scenario.coordinator_on_host_0 ? ", coordinator on host 0" : "",
      in_seconds(scenario.lost_lock));
  if (!scenario.worlds.empty())
    text += fmt::format("\n  of these numbers of ranks: {}", fmt::join(scenario.worlds, ", "));
  for (int host = 0; host < scenario.hosts(); ++host) {
    const auto i = static_cast<std::size_t>(host);
    text += fmt::format("\n  host {}: {} ranks, agent at {:.3f} s, clock {:+} ppm", host,
                        scenario.slots[i], in_seconds(scenario.first_agents[i]),
                        scenario.clocks[i].parts_per_million);
  }
  text += fmt::format(
      "\n  coordinator: clock {:+} ppm; network: {:.3f} s, {} % slow, {} % twice, "
      "{} % reordered",
      scenario.clocks.back().parts_per_million, in_seconds(scenario.network.longest_delay),
      scenario.network.slow_percent, scenario.network.twice_percent,
      scenario.network.reordered_percent);
  if (const auto& failing = scenario.failing)
    text += fmt::format("\n  rank {} fails in step {} of {} attempts, way {}, code {}",
                        failing->rank, failing->step, failing->attempts,
                        static_cast<int>(failing->way), failing->exit_code);
  for (const Fault& fault : scenario.faults)
    text +=
        fmt::format("\n  {:.4f} s: {}", in_seconds(fault.time.time_since_epoch()), describe(fault));
  return text;
}

}  // namespace strata::launcher::simulation
