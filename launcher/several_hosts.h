// The part of an mlaunch in a run of several hosts: the coordinator, or an agent.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launcher/command/run.h"
#include "launcher/control/run_control.h"
#include "launcher/start/agent_command.h"
#include "launcher/wire/control_wire.h"

namespace strata::launcher {

/// What decides, and by what it reaches other hosts.
struct RunParts {
  std::unique_ptr<RunControl> control = nullptr;
  std::unique_ptr<ControlModule> module = nullptr;
  std::unique_ptr<ControlWire> wire = nullptr;  ///< null: the run has one host
  std::vector<AgentStart> starts = {};
  std::string agents_secret = {};  ///< for their standard input
};

/// Makes the parts, as the options say. The coordinator of several hosts begins to listen, others
/// to connect; `run` learns its own address, and at which the coordinator listens. Threads that
/// start here take no signals if the caller has blocked them. Throws ConfigError or HostError for a
/// secret, an address or a port that is no good.
RunParts make_run_parts(RunControl::TimePoint now, Run& run);

/// True if this process is an agent of a run that another host coordinates.
inline bool is_agent(const Run& run) { return !run.options.hosts.coordinates; }

/// True if, besides, nothing that mlaunch does on that host has started it: people look at its
/// screen, as it is not that of the host that coordinates.
inline bool is_joining(const Run& run) { return is_agent(run) && run.options.hosts.secret != "-"; }

}  // namespace strata::launcher
