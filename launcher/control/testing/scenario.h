// What happens to a simulated run, drawn from its seed: its size, its clocks, its network, and the
// faults that it meets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/control/restart_policy.h"
#include "launcher/control/testing/virtual_time.h"

namespace strata::launcher::simulation {

struct Fault {
  enum class Kind {
    broken_stream,
    deaf_agent,     ///< nothing from the coordinator arrives
    unheard_agent,  ///< nothing from the agent arrives
    partition,      ///< both
    crashed_rank,   ///< of the attempt under way, any
    rank_out_of_memory,
    hanging_rank,
    slowed_rank,    ///< it is stopped and continued all the time, and runs between
    unread_output,  ///< nobody reads what ranks of the host print
    crashed_agent,  ///< and with it its ranks; another one may come
    second_agent,   ///< while the first lives, which dies some time later
    crashed_host,   ///< it may come back with another agent
    paused_host,
    paused_coordinator,
    crashed_coordinator,  ///< another one may come and take up the run
    full_disk,
    held_lock,  ///< something else holds the lock of the output folder
    user_signal,
    host_told_to_end,  ///< SIGTERM to its agent; another one may come later
  };
  Kind kind = Kind::broken_stream;
  int attempt = -1;  ///< after whose beginning it comes; -1: after that of the run
  Time time = {};
  int host = 0;
  Duration lasts{};  ///< kForever: it does not end
  int number = 0;    ///< of the signal
};
inline constexpr Duration kForever = std::chrono::hours(1000);

/// A rank that fails whenever it gets there, until so many attempts have failed.
struct FailingRank {
  enum class Way { exits, cannot_start, is_out_of_memory };
  Way way = Way::exits;
  int rank = 0;
  std::int64_t step = -1;  ///< -1: as soon as it starts
  int exit_code = 1;
  int attempts = 1;
};

struct NetworkTraits {
  Duration longest_delay{};
  int slow_percent = 0;       ///< of messages, which take up to 1 s
  int twice_percent = 0;      ///< of messages, which arrive once more, up to 10 s later
  int reordered_percent = 0;  ///< of messages, which let later ones overtake
};

struct Scenario {
  std::uint64_t seed = 0;
  std::vector<int> slots = {};              ///< of each host
  std::vector<Duration> first_agents = {};  ///< when the agent of each host begins
  std::vector<HostClock> clocks = {};       ///< of each host, and of the coordinator's
  int least_hosts = 1;
  std::vector<int> worlds = {};  ///< that rank 0 says it can be one of; empty: it says nothing
  bool in_one_process = false;   ///< no lease is needed, and no network
  bool coordinator_on_host_0 = false;
  RestartPolicy::Limits limits = {};
  std::int64_t steps = 0;
  Duration step_time{};
  std::chrono::seconds hang_limit{0};  ///< --hang-timeout
  std::int64_t commit_every = 1;
  Duration lost_lock{};  ///< time for which the file server keeps the lock of a host that is down
  NetworkTraits network = {};
  std::optional<FailingRank> failing = {};
  std::vector<Fault> faults = {};

  [[nodiscard]] int hosts() const { return static_cast<int>(slots.size()); }
  [[nodiscard]] bool fits(int world) const {
    return worlds.empty() || std::ranges::find(worlds, world) != worlds.end();
  }
};

Scenario draw_scenario(std::uint64_t seed);
std::string describe(const Scenario& scenario);
std::string describe(const Fault& fault);

}  // namespace strata::launcher::simulation
