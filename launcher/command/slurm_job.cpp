#include "launcher/command/slurm_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/integer.h"
#include "core/slurm_variables.h"

namespace strata::launcher {
namespace {

constexpr int kMostRanks = 1024;  ///< of a host

[[noreturn]] void refuse(const Surroundings& surroundings, const char* one, const char* other) {
  throw ConfigError(fmt::format("{} contradicts {}; Slurm sets both, leave them as they are",
                                surroundings.assignment(one), surroundings.assignment(other)));
}

/// Returns the GPUs of one node, from "8", "a100:8" or "a100:4,l40:2"; 0: none were asked for.
int gpus_of_node(const Surroundings& surroundings) {
  const char* name = surroundings.value("SLURM_GPUS_PER_NODE").empty() ? "SLURM_GPUS_ON_NODE"
                                                                       : "SLURM_GPUS_PER_NODE";
  const std::string text = surroundings.value(name);
  std::string_view rest = text;
  std::int64_t gpus = 0;
  while (!rest.empty()) {
    const std::string_view kind = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), kind.size() + 1));
    const auto count = parse_integer(kind.substr(kind.rfind(':') + 1));
    if (!count || *count < 0 || *count > kMostRanks)
      throw ConfigError(surroundings.assignment(name) + ": expected a number of GPUs");
    gpus += *count;
  }
  if (gpus > kMostRanks)
    throw ConfigError(fmt::format("{}: a host has at most {} ranks; say how many with -np",
                                  surroundings.assignment(name), kMostRanks));
  return static_cast<int>(gpus);
}

/// Returns the tasks of each node, if the job was asked for tasks; else nothing. Inside of a step
/// the variables are the step's.
std::vector<int> tasks_of_nodes(const Surroundings& surroundings, std::size_t nodes) {
  constexpr const char* kTasks = "SLURM_TASKS_PER_NODE";
  if (surroundings.value("SLURM_NTASKS").empty() || !surroundings.value("SLURM_STEP_ID").empty())
    return {};
  const auto tasks = parse_slurm_counts(surroundings.value(kTasks), kMostRanks);
  if (!tasks)
    throw ConfigError(fmt::format(
        "{}: expected the number of tasks of each node, as in 4(x2),3, from 1 to {}; say how many "
        "ranks a host has with -np",
        surroundings.assignment(kTasks), kMostRanks));
  if (tasks->size() != nodes) refuse(surroundings, kTasks, "SLURM_JOB_NODELIST");
  return *tasks;
}

}  // namespace

std::optional<int> nodes_of_slurm_job(const Surroundings& surroundings) {
  if (surroundings.value("SLURM_JOB_ID").empty() ||
      surroundings.value("SLURM_JOB_NUM_NODES").empty())
    return std::nullopt;
  return surroundings.integer("SLURM_JOB_NUM_NODES", 1);
}

std::optional<SlurmTask> task_of_srun(const Surroundings& surroundings) {
  if (!is_step_of_srun(surroundings.value("SLURM_STEP_ID"))) return std::nullopt;
  const SlurmTask task{surroundings.integer("SLURM_PROCID", 0),
                       surroundings.integer("SLURM_STEP_NUM_TASKS", 1)};
  if (task.number >= task.tasks) refuse(surroundings, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  return task;
}

bool may_start_again(std::string_view shown) {
  const auto has = [shown](std::string_view word) {
    return shown.find(word) != std::string_view::npos;
  };
  // While processes of a job that is over are left, its state is COMPLETING, whatever ended it.
  return has(" JobState=RUNNING ") || has(" Reason=TimeLimit ");
}

std::vector<ListedHost> hosts_of_slurm_job(const Surroundings& surroundings) {
  constexpr const char* kCount = "SLURM_JOB_NUM_NODES";
  constexpr const char* kList = "SLURM_JOB_NODELIST";
  const int nodes = surroundings.integer(kCount, 1);
  if (surroundings.value("SLURM_STEP_ID").empty() && !surroundings.value("SLURM_NNODES").empty() &&
      surroundings.integer("SLURM_NNODES", 1) != nodes)
    refuse(surroundings, kCount, "SLURM_NNODES");
  if (surroundings.value(kList).empty())
    throw ConfigError(fmt::format("{}, but {} is not set, which Slurm sets, too",
                                  surroundings.assignment(kCount), kList));
  const auto names = surroundings.slurm_host_names(surroundings.value(kList));
  if (std::cmp_not_equal(names.size(), nodes)) refuse(surroundings, kCount, kList);
  const int gpus = gpus_of_node(surroundings);
  const std::vector<int> tasks = tasks_of_nodes(surroundings, names.size());
  std::vector<ListedHost> hosts;
  for (std::size_t node = 0; node < names.size(); ++node)
    hosts.push_back({names[node], gpus > 0 ? gpus : tasks.empty() ? 0 : tasks[node]});
  return hosts;
}

}  // namespace strata::launcher
