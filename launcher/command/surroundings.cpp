#include "launcher/command/surroundings.h"

#include <fmt/core.h>

#include <climits>
#include <sstream>

#include "core/error.h"
#include "core/integer.h"
#include "launcher/command/program_output.h"

namespace strata::launcher {
namespace {

std::vector<std::string> names_from_scontrol(const std::string& list) {
  std::istringstream lines(output_of({"scontrol", "show", "hostnames", list}));
  std::vector<std::string> names;
  for (std::string name; lines >> name;) names.push_back(name);
  return names;
}

}  // namespace

std::string Surroundings::value(const std::string& name) const {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

std::string Surroundings::assignment(const std::string& name) const {
  return name + "=" + value(name);
}

int Surroundings::integer(const std::string& name, int smallest) const {
  const auto number = parse_integer(value(name));
  if (!number || *number < smallest || *number > INT_MAX)
    throw ConfigError(
        fmt::format("{}: expected an integer of at least {}", assignment(name), smallest));
  return static_cast<int>(*number);
}

Surroundings surroundings_of(const std::vector<std::string>& environment) {
  Surroundings surroundings;
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos)
      surroundings.variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  surroundings.slurm_host_names = names_from_scontrol;
  surroundings.devices = devices_of_host();
  return surroundings;
}

}  // namespace strata::launcher
