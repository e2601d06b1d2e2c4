#include "launcher/rank_environment.h"

#include <map>
#include <string_view>

namespace strata::launcher {
namespace {

std::map<std::string, std::string> variables_of(const RankIdentity& identity) {
  const std::string rank = std::to_string(identity.rank);
  const std::string world = std::to_string(identity.world);
  std::map<std::string, std::string> variables{
      {"STRATA_RANK", rank},
      {"STRATA_WORLD", world},
      {"STRATA_LOCAL_RANK", rank},
      {"STRATA_LOCAL_WORLD", world},
      {"STRATA_HOST", identity.host},
      {"STRATA_RUN_ID", identity.run_id},
      {"STRATA_ATTEMPT", "0"},
      {"STRATA_GRACE", std::to_string(identity.grace.count())},
      {"STRATA_STORE_FD", std::to_string(identity.store_fd)},
      {"STRATA_STATUS_FD", std::to_string(identity.status_fd)},
      {"RANK", rank},
      {"LOCAL_RANK", rank},
      {"WORLD_SIZE", world},
      {"LOCAL_WORLD_SIZE", world},
      {"LOCAL_SIZE", world},
      {"CROSS_RANK", "0"},
      {"CROSS_SIZE", "1"},
      {"GROUP_RANK", "0"},
      {"GROUP_WORLD_SIZE", "1"},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(identity.master_port)},
  };
  std::string terminal = identity.output_on_terminal ? "stdout" : "";
  if (identity.error_on_terminal) terminal += terminal.empty() ? "stderr" : " stderr";
  if (!terminal.empty()) variables["STRATA_TERMINAL"] = terminal;
  if (!identity.visible_devices.empty())
    variables["CUDA_VISIBLE_DEVICES"] = identity.visible_devices;
  return variables;
}

}  // namespace

std::vector<std::string> rank_environment(const std::vector<std::string>& inherited,
                                          const RankIdentity& identity) {
  const std::map<std::string, std::string> variables = variables_of(identity);
  std::vector<std::string> environment;
  for (const std::string& entry : inherited) {
    const std::string name = entry.substr(0, entry.find('='));
    if (variables.count(name) == 0 && name != "STRATA_TERMINAL") environment.push_back(entry);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace strata::launcher
