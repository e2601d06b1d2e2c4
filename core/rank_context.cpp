#include "core/rank_context.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/host_meeting.h"
#include "core/host_name.h"
#include "core/integer.h"
#include "core/run_id.h"
#include "core/slurm_variables.h"
#include "core/socket_store.h"
#include "core/system_call.h"

namespace strata {
namespace {

const char* text_of(const char* name) { return std::getenv(name); }

/// True if the variable is set and not empty.
bool is_given(const char* name) { return text_of(name) != nullptr && *text_of(name) != '\0'; }

std::string text_or(const char* name, const std::string& otherwise) {
  return is_given(name) ? text_of(name) : otherwise;
}

std::string assignment(const char* name) {
  return std::string(name) + "=" + text_or(name, "(not set)");
}

int integer(const char* name, int smallest) {
  const auto value = parse_integer(text_or(name, ""));
  if (!value || *value < smallest || *value > INT_MAX)
    throw ConfigError(
        fmt::format("{}: expected an integer of at least {}; it is set by the program that starts "
                    "the ranks, unset it to start one rank",
                    assignment(name), smallest));
  return static_cast<int>(*value);
}

int integer_or(const char* name, int smallest, int otherwise) {
  return text_of(name) != nullptr ? integer(name, smallest) : otherwise;
}

int index_below(const char* name, const char* count_name, int count) {
  const int index = integer(name, 0);
  if (index >= count)
    throw ConfigError(assignment(name) + " contradicts " + assignment(count_name) +
                      ": it must be below it");
  return index;
}

/// Returns a descriptor that mlaunch left open for this process; its children get none.
int inherited_fd(const char* name, mode_t type, const char* what) {
  const int fd = integer(name, 0);
  struct stat info {};
  if (::fstat(fd, &info) != 0 || (info.st_mode & S_IFMT) != type)
    throw ConfigError(
        assignment(name) + ": not an open " + what +
        " of mlaunch; some program between mlaunch and this one closed it, start this "
        "program with mlaunch directly");
  checked(::fcntl(fd, F_SETFD, FD_CLOEXEC), "keeping a descriptor from child processes");
  return fd;
}

/// Throws when one launcher runs inside another, since each rank would count twice.
void refuse_nested(const char* size_name, const RankContext& context, const char* context_name) {
  if (!is_given(size_name)) return;
  const int size = integer(size_name, 1);
  if (size != 1 && size != context.world)
    throw ConfigError(assignment(size_name) + " contradicts " + assignment(context_name) +
                      ": one launcher runs inside another; use one of them (`mlaunch --launcher "
                      "mpi` starts mpirun itself)");
}

/// Parses STRATA_FIRST_RANKS, as in "0,4,8": the first rank of each host.
std::vector<int> first_ranks_of(int world) {
  const char* name = "STRATA_FIRST_RANKS";
  std::vector<int> first_ranks;
  std::string_view rest = text_of(name) != nullptr ? text_of(name) : "";
  while (true) {
    const std::string_view word = rest.substr(0, rest.find(','));
    const auto rank = parse_integer(word);
    const int least = first_ranks.empty() ? 0 : first_ranks.back() + 1;
    const int most = first_ranks.empty() ? 0 : world - 1;
    if (!rank || *rank < least || *rank > most)
      throw ConfigError(assignment(name) +
                        ": expected the first rank of each host, as in 0,4,8, below " +
                        assignment("STRATA_WORLD"));
    first_ranks.push_back(static_cast<int>(*rank));
    if (word.size() == rest.size()) return first_ranks;
    rest.remove_prefix(word.size() + 1);
  }
}

/// Throws if rank, local rank and local world are not those of the rank's node.
void refuse_other_place(const RankContext& context) {
  const auto node = static_cast<std::size_t>(context.node);
  const int first = context.first_ranks[node];
  const int end =
      node + 1 < context.first_ranks.size() ? context.first_ranks[node + 1] : context.world;
  if (context.local_world != end - first)
    throw ConfigError(assignment("STRATA_LOCAL_WORLD") + " contradicts " +
                      assignment("STRATA_FIRST_RANKS"));
  if (context.rank != first + context.local_rank)
    throw ConfigError(assignment("STRATA_LOCAL_RANK") + " contradicts " +
                      assignment("STRATA_RANK") + " and " + assignment("STRATA_FIRST_RANKS"));
}

RankContext from_mlaunch() {
  RankContext context;
  context.started_by = "mlaunch";
  context.start_limit = std::chrono::hours(24);
  context.world = integer("STRATA_WORLD", 1);
  context.rank = index_below("STRATA_RANK", "STRATA_WORLD", context.world);
  context.local_world = integer("STRATA_LOCAL_WORLD", 1);
  context.local_rank = index_below("STRATA_LOCAL_RANK", "STRATA_LOCAL_WORLD", context.local_world);
  if (context.local_world > context.world)
    throw ConfigError(assignment("STRATA_LOCAL_WORLD") + " contradicts " +
                      assignment("STRATA_WORLD") + ": a host cannot have more ranks than the run");
  context.first_ranks = first_ranks_of(context.world);
  context.node = integer("STRATA_NODE", 0);
  if (context.node >= std::ssize(context.first_ranks))
    throw ConfigError(assignment("STRATA_NODE") + " contradicts " +
                      assignment("STRATA_FIRST_RANKS") + ": no such host is named there");
  refuse_other_place(context);
  refuse_nested("OMPI_COMM_WORLD_SIZE", context, "STRATA_WORLD");
  if (is_given("TORCHELASTIC_RUN_ID")) refuse_nested("WORLD_SIZE", context, "STRATA_WORLD");
  context.host = text_or("STRATA_HOST", host_name());
  context.host_address = text_or("STRATA_HOST_ADDRESS", "");
  context.network_interface = text_or("STRATA_INTERFACE", "");
  context.run_id = text_or("STRATA_RUN_ID", "");
  if (context.run_id.empty())
    throw ConfigError(assignment("STRATA_RUN_ID") + " contradicts " + assignment("STRATA_RANK") +
                      ": mlaunch sets both; unset STRATA_RANK to start one rank");
  context.attempt = integer("STRATA_ATTEMPT", 0);
  context.last_step = integer_or("STRATA_LAST_STEP", 0, -1);
  context.is_elastic = is_given("STRATA_ELASTIC");
  if (text_of("STRATA_LOCK_WAIT") != nullptr)
    context.lock_wait = std::chrono::seconds(integer("STRATA_LOCK_WAIT", 0));
  context.grace = std::chrono::seconds(integer_or("STRATA_GRACE", 0, 0));
  context.status_fd = inherited_fd("STRATA_STATUS_FD", S_IFREG, "status page");
  context.store =
      std::make_shared<SocketStore>(UniqueFd(inherited_fd("STRATA_STORE_FD", S_IFSOCK, "socket")),
                                    fmt::format("{}/{}/", context.run_id, context.attempt));
  const std::string terminal = " " + text_or("STRATA_TERMINAL", "") + " ";
  context.stdout_is_terminal = terminal.find(" stdout ") != std::string::npos;
  context.stderr_is_terminal = terminal.find(" stderr ") != std::string::npos;
  return context;
}

RankContext from_open_mpi() {
  RankContext context;
  context.started_by = "openmpi";
  context.world = integer("OMPI_COMM_WORLD_SIZE", 1);
  context.rank = index_below("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", context.world);
  context.local_world = integer("OMPI_COMM_WORLD_LOCAL_SIZE", 1);
  context.local_rank =
      index_below("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", context.local_world);
  context.host = host_name();
  context.run_id = text_or("STRATA_RUN_ID", text_or("PMIX_NAMESPACE", "openmpi"));
  return context;
}

bool inside_slurm_step() {
  return is_step_of_srun(text_or("SLURM_STEP_ID", "")) && text_of("SLURM_PROCID") != nullptr;
}

/// Returns the number of tasks on a node of the step.
int slurm_local_world(int node, int world) {
  const char* name = "SLURM_STEP_TASKS_PER_NODE";
  const auto tasks = parse_slurm_counts(text_or(name, ""), world);
  if (!tasks)
    throw ConfigError(assignment(name) +
                      ": expected the number of tasks of each node, as in 4(x2),3");
  if (std::cmp_greater_equal(node, tasks->size()))
    throw ConfigError(assignment(name) + " contradicts " + assignment("SLURM_NODEID") +
                      ": it names too few nodes");
  return (*tasks)[static_cast<std::size_t>(node)];
}

RankContext from_slurm() {
  RankContext context;
  context.started_by = "slurm";
  const char* count_name =
      text_of("SLURM_STEP_NUM_TASKS") != nullptr ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  context.world = integer(count_name, 1);
  context.rank = index_below("SLURM_PROCID", count_name, context.world);
  context.local_world = slurm_local_world(integer_or("SLURM_NODEID", 0, 0), context.world);
  context.local_rank =
      index_below("SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE", context.local_world);
  context.host = text_or("SLURMD_NODENAME", host_name());
  context.run_id = text_or("SLURM_JOB_ID", "slurm") + "." + text_or("SLURM_STEP_ID", "");
  context.attempt = integer_or("SLURM_RESTART_COUNT", 0, 0);
  return context;
}

/// True if torchrun's variables say that this is one rank of several. PyTorchJobs of Kubernetes,
/// accelerate and DeepSpeed's launcher set the same ones. WORLD_SIZE=1 says nothing.
bool is_rank_of_torch() {
  if (!is_given("RANK") && !is_given("WORLD_SIZE")) return false;
  const int world = integer("WORLD_SIZE", 1);
  if (world > 1 && !is_given("RANK"))
    throw ConfigError(
        fmt::format("{} without RANK: nobody says which of these ranks this is; start them with "
                    "`mlaunch -np {} train ...`, or unset WORLD_SIZE to start one rank",
                    assignment("WORLD_SIZE"), world));
  if (is_given("RANK")) index_below("RANK", "WORLD_SIZE", world);
  return world > 1;
}

[[noreturn]] void refuse_torch(const std::string& why, int world) {
  throw ConfigError(
      fmt::format("{0}; on one host `mlaunch -np {1} train ...` or `torchrun --nproc_per_node {1} "
                  "--no-python train ...` starts the ranks, once RANK and WORLD_SIZE are unset",
                  why, world));
}

const char* first_given(const char* name, const char* otherwise) {
  return is_given(name) ? name : otherwise;
}

RankContext from_torch() {
  RankContext context;
  context.started_by = "torchrun";
  context.world = integer("WORLD_SIZE", 1);
  context.rank = index_below("RANK", "WORLD_SIZE", context.world);
  const char* hosts = first_given("GROUP_WORLD_SIZE", "CROSS_SIZE");  // DeepSpeed sets the latter
  if (integer_or(hosts, 1, 1) > 1)
    refuse_torch(assignment(hosts) +
                     ": ranks on several hosts are started by mlaunch itself (mlaunch -H a:2,b:2 "
                     "train ..., docs/hosts.md)",
                 context.world);
  const char* local_size = first_given("LOCAL_WORLD_SIZE", "LOCAL_SIZE");
  if (!is_given(local_size))
    refuse_torch(assignment("RANK") + " of " + assignment("WORLD_SIZE") + ", but " +
                     assignment("LOCAL_WORLD_SIZE") +
                     ": nobody says whether all ranks are on this host, and several are not "
                     "available",
                 context.world);
  context.local_world = integer(local_size, 1);
  if (context.local_world < context.world)
    refuse_torch(assignment(local_size) + " of " + assignment("WORLD_SIZE") +
                     ": ranks on several hosts are started by mlaunch itself (mlaunch -H a:2,b:2 "
                     "train ..., docs/hosts.md)",
                 context.world);
  if (context.local_world > context.world)
    throw ConfigError(assignment(local_size) + " contradicts " + assignment("WORLD_SIZE") +
                      ": a host cannot have more ranks than the run");
  context.local_rank = index_below("LOCAL_RANK", local_size, context.local_world);
  if (!is_given("MASTER_PORT"))
    refuse_torch(assignment("RANK") + " of " + assignment("WORLD_SIZE") +
                     ", but no MASTER_PORT: nothing tells the ranks of this run from another's",
                 context.world);
  context.host = host_name();
  context.attempt = integer_or("TORCHELASTIC_RESTART_COUNT", 0, 0);
  context.run_id =
      fmt::format("{}-{}", text_or("TORCHELASTIC_RUN_ID", "torch"), integer("MASTER_PORT", 1));
  context.store = meet_on_host(
      {.place = fmt::format("MASTER_PORT {} of run {}, attempt {}", text_or("MASTER_PORT", ""),
                            text_or("TORCHELASTIC_RUN_ID", "(no id)"), context.attempt),
       .rank = context.rank,
       .world = context.world,
       .prefix = fmt::format("{}/{}/", context.run_id, context.attempt)});
  return context;
}

/// Throws under a launcher that is not known here: each of its ranks would start a run of its own.
void refuse_other_launchers() {
  for (const char* name : {"PMI_SIZE", "MV2_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "PALS_LOCAL_SIZE",
                           "JSM_NAMESPACE_SIZE", "FLUX_JOB_SIZE", "HOROVOD_SIZE"})
    if (is_given(name) && integer(name, 1) > 1)
      throw ConfigError(assignment(name) +
                        ": these ranks were started by a launcher that is not known here; use Open "
                        "MPI's mpirun, or mlaunch -np N (for one rank alone unset " +
                        name + ")");
}

/// The context of a rank that no known launcher started.
RankContext alone() {
  refuse_other_launchers();
  RankContext context;
  context.started_by = "none";
  context.host = host_name();
  context.run_id = make_run_id();
  return context;
}

}  // namespace

RankContext rank_context_from_environment() {
  if (text_of("STRATA_RANK") != nullptr) return from_mlaunch();
  RankContext context;
  const char* size_name = "";
  if (text_of("OMPI_COMM_WORLD_RANK") != nullptr) {
    context = from_open_mpi();
    size_name = "OMPI_COMM_WORLD_SIZE";
  } else if (inside_slurm_step()) {
    context = from_slurm();
    size_name = "SLURM_NTASKS";
  }
  // Scripts may export WORLD_SIZE under any launcher; it counts only together with RANK.
  if (context.world > 1 && is_given("RANK")) refuse_nested("WORLD_SIZE", context, size_name);
  if (context.world == 1 && is_rank_of_torch())
    context = from_torch();  // applies inside an srun or mpirun of one rank, too
  else if (context.started_by.empty())
    context = alone();
  if (context.world == 1) context.store = make_local_store();
  // Open MPI gives ranks a pseudo-terminal if its own output is a terminal, so isatty says nothing.
  const bool behind_mpirun = context.started_by == "openmpi";
  context.stdout_is_terminal = !behind_mpirun && ::isatty(STDOUT_FILENO) == 1;
  context.stderr_is_terminal = !behind_mpirun && ::isatty(STDERR_FILENO) == 1;
  return context;
}

}  // namespace strata
