// The environment of mlaunch, as far as it says which hosts and devices a run has.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launcher/command/device_choice.h"

namespace strata::launcher {

struct Surroundings {
  std::map<std::string, std::string> variables = {};  ///< of the environment
  /// Returns the names of nodes in one of Slurm's lists, "n[1-3]"; throws HostError if it cannot.
  std::function<std::vector<std::string>(const std::string&)> slurm_host_names = {};

  HostDevices devices = {};

  /// Returns the variable's value; "": it is not set, or empty.
  [[nodiscard]] std::string value(const std::string& name) const;
  /// Returns "NAME=value" for messages.
  [[nodiscard]] std::string assignment(const std::string& name) const;
  /// Returns the value as an integer of at least `smallest`. Throws ConfigError for another value.
  [[nodiscard]] int integer(const std::string& name, int smallest) const;
};

/// Returns those with an environment of entries "NAME=value", on this host, whose `scontrol` is
/// asked for names of nodes.
Surroundings surroundings_of(const std::vector<std::string>& environment);

}  // namespace strata::launcher
