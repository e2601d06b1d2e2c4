#include "launcher/command/network_interface.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/network_interfaces.h"

namespace strata::launcher {
namespace {

/// Returns what is wrong with the name; "": nothing.
std::string unknown_interface(const std::string& name) {
  const std::vector<InterfaceAddress> all = interface_addresses();
  if (std::ranges::find(all, name, &InterfaceAddress::name) != all.end()) return "";
  return "this host has no interface of that name with an address; it has " + describe(all);
}

}  // namespace

void check_network_interface(const Options& options, const Surroundings& surroundings) {
  if (!options.hosts.are_several() || options.hosts.node < 0) return;
  const std::string& typed = options.network_interface;
  const std::string name = typed.empty() ? surroundings.value("STRATA_INTERFACE") : typed;
  if (name.empty()) return;
  const std::string wrong = unknown_interface(name);
  if (wrong.empty()) return;
  if (typed.empty()) throw ConfigError("STRATA_INTERFACE=" + name + ": " + wrong);
  throw InvalidArgument("--interface " + name + ": " + wrong);
}

}  // namespace strata::launcher
