#include "launcher/group/rank_environment.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

namespace strata::launcher {
namespace {

std::string joined_first_ranks(const Placement& placement) {
  std::string text;
  for (int host = 0; host < placement.hosts(); ++host)
    text += (host == 0 ? "" : ",") + std::to_string(placement.first_rank(host));
  return text;
}

std::map<std::string, std::string> variables_of(const RankIdentity& identity) {
  const Placement& placement = identity.placement;
  const std::string local_rank = std::to_string(identity.local_rank);
  const std::string rank =
      std::to_string(placement.first_rank(identity.node) + identity.local_rank);
  const std::string world = std::to_string(placement.world());
  const std::string local_world = std::to_string(placement.ranks_of(identity.node));
  const std::string node = std::to_string(identity.node);
  std::map<std::string, std::string> variables{
      {"STRATA_RANK", rank},
      {"STRATA_WORLD", world},
      {"STRATA_LOCAL_RANK", local_rank},
      {"STRATA_LOCAL_WORLD", local_world},
      {"STRATA_NODE", node},
      {"STRATA_FIRST_RANKS", joined_first_ranks(placement)},
      {"STRATA_HOST", identity.host},
      {"STRATA_RUN_ID", identity.run_id},
      {"STRATA_ATTEMPT", std::to_string(placement.attempt)},
      {"STRATA_LOCK_WAIT", std::to_string(identity.lock_wait.count())},
      {"STRATA_GRACE", std::to_string(identity.grace.count())},
      {"STRATA_STORE_FD", std::to_string(identity.store_fd)},
      {"STRATA_STATUS_FD", std::to_string(identity.status_fd)},
      {"RANK", rank},
      {"LOCAL_RANK", local_rank},
      {"WORLD_SIZE", world},
      {"LOCAL_WORLD_SIZE", local_world},
      {"LOCAL_SIZE", local_world},
      {"CROSS_RANK", std::to_string(placement.hosts_with(identity.local_rank, identity.node))},
      {"CROSS_SIZE", std::to_string(placement.hosts_with(identity.local_rank, placement.hosts()))},
      {"GROUP_RANK", node},
      {"GROUP_WORLD_SIZE", std::to_string(placement.hosts())},
      {"MASTER_ADDR", identity.master_address},
      {"MASTER_PORT", std::to_string(identity.master_port)},
  };
  if (identity.is_elastic) variables["STRATA_ELASTIC"] = "1";
  if (identity.last_step >= 0) variables["STRATA_LAST_STEP"] = std::to_string(identity.last_step);
  std::string terminal = identity.output_on_terminal ? "stdout" : "";
  if (identity.error_on_terminal) terminal += terminal.empty() ? "stderr" : " stderr";
  if (!terminal.empty()) variables["STRATA_TERMINAL"] = terminal;
  if (!identity.host_address.empty()) variables["STRATA_HOST_ADDRESS"] = identity.host_address;
  if (!identity.network_interface.empty())
    variables["STRATA_INTERFACE"] = identity.network_interface;
  if (!identity.visible_devices.empty())
    variables["CUDA_VISIBLE_DEVICES"] = identity.visible_devices;
  return variables;
}

/// True for variables by which Open MPI, PMIx and Slurm tell a process which task it is. What
/// Slurm says of the whole job stays.
bool tells_of_a_task(std::string_view name) {
  for (const char* prefix : {"OMPI_", "PMIX_", "PMI_", "PRTE_", "SLURM_STEP", "SLURM_TASK",
                             "SLURM_SRUN_", "SLURM_CPU_BIND", "SLURM_LAUNCH_"})
    if (name.starts_with(prefix)) return true;
  constexpr std::string_view kOfTask[] = {"SLURM_PROCID", "SLURM_LOCALID",     "SLURM_NODEID",
                                          "SLURM_GTIDS",  "SLURM_NTASKS",      "SLURM_NPROCS",
                                          "SLURM_NNODES", "SLURM_DISTRIBUTION"};
  return std::ranges::find(kOfTask, name) != std::end(kOfTask);
}

}  // namespace

std::vector<std::string> own_environment() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  return environment;
}

std::vector<std::string> rank_environment(const std::vector<std::string>& inherited,
                                          const RankIdentity& identity) {
  std::map<std::string, std::string> variables = variables_of(identity);
  const auto is_set = [&inherited](const std::string& name) {
    return std::ranges::any_of(inherited, [&](const std::string& entry) {
      return entry.starts_with(name + "=") && !entry.ends_with('=');
    });
  };
  if (!identity.network_interface.empty() || is_set("STRATA_INTERFACE"))
    variables.erase("STRATA_HOST_ADDRESS");
  if (is_set("STRATA_LOCK_WAIT")) variables.erase("STRATA_LOCK_WAIT");
  std::vector<std::string> environment;
  for (const std::string& entry : inherited) {
    const std::string name = entry.substr(0, entry.find('='));
    if (variables.count(name) == 0 && name != "STRATA_TERMINAL" && name != "STRATA_LAST_STEP" &&
        name != "STRATA_ELASTIC" && name != "STRATA_HOST_ADDRESS" && !tells_of_a_task(name))
      environment.push_back(entry);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace strata::launcher
