// The command that starts mlaunch as the agent of another host.
#pragma once

#include <string>
#include <vector>

#include "launcher/command/options.h"

namespace strata::launcher {

/// An agent to start on another host.
struct AgentStart {
  std::string host;                           ///< its name in the run
  std::string name;                           ///< for people
  std::vector<std::string> command = {};      ///< of the program that starts it
  std::vector<std::string> environment = {};  ///< of that program
  bool tells_arrival = false;  ///< it prints kSshIsThere once it has reached the host
};

struct AgentPlace {
  int node = 0;
  int ranks = 1;
  std::vector<std::string> devices = {};  ///< as ListedHost has them
};

/// Returns the values of --nnodes and of --elastic ("": it is not given), as they are typed.
std::string range_text(int least, int most);
std::string elastic_text(const Worlds::Range& worlds);

/// Returns the arguments of mlaunch on that host; its secret comes over standard input.
std::vector<std::string> agent_arguments(const Options& options, const AgentPlace& place);

/// A program to run on another host.
struct RemoteProgram {
  std::string host;
  std::string folder;  ///< to start in
  std::string path;
  std::vector<std::string> arguments;
};

/// The line that ssh_command's shell prints before anything else, once ssh has reached the host.
inline constexpr const char* kSshIsThere = "strata: ssh is there";

/// Returns the words of ssh that run it, the last of which is for the shell there, with each word
/// quoted.
std::vector<std::string> ssh_command(const RemoteProgram& program);

/// Returns the words of srun that run it as a step of its own, beside all other steps of the job
/// and with all that the job has on that node. `more` are options of srun.
std::vector<std::string> srun_command(const RemoteProgram& program,
                                      const std::vector<std::string>& more);

/// Returns the environment for that: of Slurm's variables only those that tell of the whole job,
/// since srun takes the others for options that are meant for the job's own tasks.
std::vector<std::string> srun_environment(const std::vector<std::string>& inherited);

/// Returns the words of Open MPI's mpirun that run it once. `more` are options of mpirun; `as_root`
/// lets root use it.
std::vector<std::string> mpirun_command(const RemoteProgram& program,
                                        const std::vector<std::string>& more, bool as_root);

}  // namespace strata::launcher
