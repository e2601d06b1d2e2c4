// The part of an mlaunch in a run of several hosts: coordinator on host 0, agent on the others.
#pragma once

#include <memory>

#include "launcher/command/run.h"
#include "launcher/control/run_control.h"
#include "launcher/wire/control_wire.h"

namespace strata::launcher {

/// What decides, and by what it reaches other hosts.
struct RunParts {
  std::unique_ptr<RunControl> control;
  std::unique_ptr<ControlModule> module;
  std::unique_ptr<ControlWire> wire;  ///< null: the run has one host
};

/// Makes the parts, as the options say. On host 0 of several it begins to listen, on others to
/// connect; `run` learns its own address. Threads that start here take no signals if the caller has
/// blocked them. Throws ConfigError or HostError for a secret, an address or a port that is no
/// good.
RunParts make_run_parts(RunControl::TimePoint now, Run& run);

/// True if this process is an agent of a run that another host coordinates.
inline bool is_agent(const Run& run) { return run.options.hosts.node > 0; }

}  // namespace strata::launcher
