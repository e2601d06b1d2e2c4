#include "comm/hosts/listen_address.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/network_interfaces.h"

namespace strata::comm {
namespace {

constexpr const char* kAdvice =
    "set STRATA_HOST_ADDRESS to an IP address of this host that the others reach, or "
    "STRATA_INTERFACE to the interface that has one (`ip address` lists them)";

[[noreturn]] void refuse(const std::string& what) { throw ConfigError(what + "; " + kAdvice); }

/// Throws unless `text` is an IP address that one host has.
std::string checked_address(const std::string& text) {
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) {
    if (four.s_addr == INADDR_ANY) refuse("STRATA_HOST_ADDRESS=" + text + " names no host");
    return text;
  }
  if (::inet_pton(AF_INET6, text.c_str(), &six) == 1) {
    if (IN6_IS_ADDR_UNSPECIFIED(&six)) refuse("STRATA_HOST_ADDRESS=" + text + " names no host");
    return text;
  }
  refuse("STRATA_HOST_ADDRESS=" + text + " is not an IP address");
}

std::string address_of_interface(const std::string& name) {
  const std::vector<InterfaceAddress> all = interface_addresses();
  std::string found;
  for (const InterfaceAddress& entry : all)
    if (name == entry.name && (found.empty() || entry.is_ipv4)) found = entry.address;
  if (found.empty())
    refuse(fmt::format("STRATA_INTERFACE={} names no interface with an address; there are {}", name,
                       describe(all)));
  return found;
}

}  // namespace

std::string interface_of(const std::string& address) {
  for (const InterfaceAddress& entry : interface_addresses())
    if (entry.address == address) return entry.name;
  return "";
}

std::string listen_address(const RankContext& context) {
  if (!context.host_address.empty()) return checked_address(context.host_address);
  if (!context.network_interface.empty()) return address_of_interface(context.network_interface);
  refuse(fmt::format("rank {} does not know at which address other hosts reach {}", context.rank,
                     context.host.empty() ? "this host" : "host " + context.host));
}

}  // namespace strata::comm
