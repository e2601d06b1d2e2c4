#include "launcher/command/scheduler_hosts.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/error.h"
#include "launcher/command/number_range.h"
#include "launcher/command/rank_count.h"
#include "launcher/command/slurm_job.h"

namespace strata::launcher {
namespace {

/// True if something typed says where ranks shall run.
bool says_where(const GivenHosts& given, const Options& options) {
  return given.launcher || given.only_this || given.count || given.node || given.is_agent ||
         !given.listed_by.empty() || !options.hosts.secret.empty() ||
         !options.devices.typed.empty();
}

void refuse_task_of_several(const SlurmTask& task) {
  if (task.tasks == 1) return;
  throw InvalidArgument(fmt::format(
      "srun has started mlaunch {} times (SLURM_PROCID={}, SLURM_STEP_NUM_TASKS={}): start it "
      "once, in the batch script and without srun, then it starts itself on the other nodes; or "
      "give each one --nnodes N --node-rank $SLURM_NODEID --master-addr ADDRESS --master-port PORT "
      "--run-secret FILE (docs/hosts.md)",
      task.tasks, task.number, task.tasks));
}

/// Takes ranks per host from the job where nothing typed says them.
void take_listed(const std::vector<ListedHost>& of_job, const std::string& list,
                 const GivenHosts& given, Options& options) {
  const bool is_typed = options.ranks_given || given.all_ranks;
  for (ListedHost& host : options.hosts.listed) {
    const auto found = std::ranges::find(of_job, host.name, &ListedHost::name);
    if (found == of_job.end())
      throw InvalidArgument(
          fmt::format("{}: {} is no node of this job ({})", given.listed_by, host.name, list));
    if (host.slots == 0 && !is_typed) host.slots = found->slots;
  }
}

}  // namespace

void take_slurm_hosts(const Surroundings& surroundings, GivenHosts& given, Options& options) {
  const bool is_typed = options.launcher == Options::Launcher::slurm;
  if (!is_typed && says_where(given, options)) return;
  const auto nodes = nodes_of_slurm_job(surroundings);
  if (!nodes && is_typed)
    throw InvalidArgument(
        "--launcher slurm: SLURM_JOB_ID and SLURM_JOB_NUM_NODES are not both set, so this is no "
        "job of Slurm; start mlaunch in a batch script (sbatch) or a shell of salloc");
  if (!nodes) return;
  const auto task = task_of_srun(surroundings);
  if (task) refuse_task_of_several(*task);
  if (!is_typed && *nodes == 1) return;
  if (!is_typed && task) {
    options.notes.push_back(fmt::format(
        "srun has started mlaunch, so ranks are on this node alone; --launcher slurm takes all {} "
        "nodes of the job",
        *nodes));
    return;
  }
  const std::vector<ListedHost> of_job = hosts_of_slurm_job(surroundings);
  const std::string list = surroundings.assignment("SLURM_JOB_NODELIST");
  if (given.listed_by.empty()) {
    given.listed_by = list;
    for (const ListedHost& host : of_job) options.hosts.listed.push_back({host.name, 0});
  }
  take_listed(of_job, list, given, options);
  given.own_name = surroundings.value("SLURMD_NODENAME");
  options.launcher = Options::Launcher::slurm;
  if (!is_typed)
    options.notes.push_back(fmt::format(
        "ranks are on all {} nodes of Slurm's job {}; --launcher local: on this one alone", *nodes,
        surroundings.value("SLURM_JOB_ID")));
}

void take_kubeflow_hosts(const Surroundings& surroundings, GivenHosts& given, Options& options) {
  const std::string count = surroundings.value("PET_NNODES");
  const bool is_agent_or_starter =
      given.is_agent || !given.listed_by.empty() || options.launcher != Options::Launcher::local;
  if (count.empty() || is_agent_or_starter || given.only_this) return;
  if (!given.count) {
    const NumberRange range = parse_range("PET_NNODES", count, 1, kMaxHosts);
    given.count = range.most;
    given.least = range.least;
    given.count_by = surroundings.assignment("PET_NNODES");
  }
  if (const std::string ranks = surroundings.value("PET_NPROC_PER_NODE");
      !ranks.empty() && !options.ranks_given) {
    given.ranks_by = surroundings.assignment("PET_NPROC_PER_NODE");
    options.ranks = parse_rank_count(given.ranks_by, ranks, surroundings.devices);
    options.ranks_given = true;
  }
  if (*given.count == 1) return;  // the rest says how hosts meet
  if (!given.node && !surroundings.value("PET_NODE_RANK").empty()) {
    given.node = surroundings.integer("PET_NODE_RANK", 0);
    if (*given.node >= *given.count)
      throw ConfigError(fmt::format("{} contradicts {}: hosts have the numbers from 0 to {}",
                                    surroundings.assignment("PET_NODE_RANK"), given.count_by,
                                    *given.count - 1));
  }
  if (options.hosts.address.empty()) options.hosts.address = surroundings.value("PET_MASTER_ADDR");
  if (!options.master_port && !surroundings.value("PET_MASTER_PORT").empty())
    options.master_port = surroundings.integer("PET_MASTER_PORT", 1);
}

}  // namespace strata::launcher
