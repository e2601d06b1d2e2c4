#include "launcher/several_hosts_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "launcher/control/coordinator.h"
#include "launcher/wire/listening_address.h"

namespace strata::launcher {

std::string waiting_text(const Run& run) {
  const Options::Hosts& hosts = run.options.hosts;
  const int others = hosts.node < 0 ? hosts.count : hosts.count - 1;
  const int needed = hosts.least - (hosts.count - others);
  const std::string range = needed == others ? "" : fmt::format("{} to ", std::max(needed, 0));
  const auto seconds = [](auto time) {
    return std::chrono::ceil<std::chrono::seconds>(time).count();
  };
  const auto last_call = seconds(Coordinator::Settings{}.last_call);
  const char* s = others == 1 ? "" : "s";
  if (needed <= 0 && hosts.worlds.least <= run.options.ranks)
    return fmt::format("run {} waits at {} for {} s for {}{} more host{}", run.run_id,
                       host_and_port(run.host_address, hosts.port), last_call,
                       others == 1 ? "" : "up to ", others, s);
  const std::string begins =
      range.empty() ? "" : fmt::format(", and {} s once there are enough", last_call);
  return fmt::format("run {} waits at {} for {}{} {}host{}, up to {} s{}", run.run_id,
                     host_and_port(run.host_address, hosts.port), range, others,
                     hosts.node < 0 ? "" : "more ", s, seconds(hosts.join), begins);
}

std::string joined_text(const Run& run) {
  const Options::Hosts& hosts = run.options.hosts;
  return fmt::format("this host has joined run {} as host {}; the mlaunch at {} watches over it",
                     run.run_id, hosts.node, host_and_port(hosts.address, hosts.port));
}

std::string ranks_text(const StartAttempt& start) {
  const int ranks = start.placement.ranks_of(start.node);
  const int first = start.placement.first_rank(start.node);
  const std::string which =
      ranks == 1 ? fmt::format("rank {} of {} starts", first, start.placement.world())
                 : fmt::format("ranks {} to {} of {} start", first, first + ranks - 1,
                               start.placement.world());
  const int attempt = start.placement.attempt;
  return which + " here" + (attempt == 0 ? "" : fmt::format(" (attempt {})", attempt));
}

}  // namespace strata::launcher
