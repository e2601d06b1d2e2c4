#include "train/session/plan_rows.h"

#include <fmt/format.h>

#include "core/error.h"
#include "train/run/planning_site.h"
#include "train/session/settle_request.h"

namespace strata::train {
namespace {

/// The command line of `train` for one row; it need not say how much memory to plan for. --hosts
/// changes a figure of the machine as in --hardware, so that the same is asked of it.
ParsedCommandLine train_line(const PlanCommandLine& line, const PlanRow& row) {
  const std::string hardware =
      line.hosts > 0 ? fmt::format("{},hosts={}", row.hardware, line.hosts) : row.hardware;
  std::vector<std::string> words{"plan"};
  words.insert(words.end(), line.train.begin(), line.train.end());
  if (!hardware.empty()) words.insert(words.end(), {"--hardware", hardware});
  if (!line.targets.empty()) words.insert(words.end(), {"--target-memory", row.target});
  if (line.world > 0) words.insert(words.end(), {"--world-size", std::to_string(line.world)});
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  ParsedCommandLine parsed =
      parse_train_command_line(static_cast<int>(arguments.size()), arguments.data(),
                               {.program = "plan", .own = plan_flags()});
  parsed.chooses = true;
  return parsed;
}

/// Gives each of the hosts that --hosts asks for as many of the ranks of --world. Throws
/// InvalidArgument if that cannot be.
void spread_over_hosts(const PlanCommandLine& line, const std::string& name,
                       machine::Machine& machine) {
  if (line.hosts == 0 || line.world == 0) return;
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument(fmt::format("--world {} --hosts {}: {}", line.world, line.hosts, why));
  };
  const int of_host = line.world / line.hosts;
  if (of_host * line.hosts != line.world)
    refuse(fmt::format("the ranks do not spread evenly over the hosts; give --world {}{}",
                       of_host > 0 ? fmt::format("{} or ", of_host * line.hosts) : "",
                       (of_host + 1) * line.hosts));
  if (machine.host_is_device()) return;
  if (of_host > machine.devices)
    refuse(
        fmt::format("that is {} ranks on a host, and a host of {} has {} {}; give more --hosts, "
                    "or --hardware {},devices={}",
                    of_host, name, machine.devices, machine.devices == 1 ? "device" : "devices",
                    name, of_host));
  machine.devices = of_host;
}

RunRequest request_for(const PlanCommandLine& line, const PlanRow& row, const RankContext& context,
                       std::span<const ModelFamily> own) {
  const ParsedCommandLine train = train_line(line, row);
  RunRequest request = settle_request(train, context, own);
  if (request.hardware) spread_over_hosts(line, row.hardware, *request.hardware);
  assume_ranks(ranks_of(train, request), request);
  return request;
}

}  // namespace

std::vector<PlanRow> planned_rows(const PlanCommandLine& line) {
  const std::vector<std::string> none{""};
  std::vector<PlanRow> rows;
  const auto& machines = line.hardware.empty() ? none : line.hardware;
  for (std::size_t i = 0; i < machines.size(); ++i)
    for (const std::string& target : line.targets.empty() ? none : line.targets)
      rows.push_back({machines[i], target, line.prices.size() == 1 ? 0 : i});
  return rows;
}

RunRequest request_of_row(const PlanCommandLine& line, const PlanRow& row,
                          const RankContext& context, std::span<const ModelFamily> own) {
  try {
    return request_for(line, row, context, own);
  } catch (const ConfigError& error) {
    if (line.hardware.size() < 2) throw;
    throw ConfigError(fmt::format("for {}: {}", row.hardware, error.what()));
  }
}

}  // namespace strata::train
