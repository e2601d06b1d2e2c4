// The network interfaces of this host.
#pragma once

#include <string>
#include <vector>

namespace strata {

struct InterfaceAddress {
  std::string name;
  std::string address;  ///< numeric
  bool is_ipv4 = true;
};

/// Returns the addresses of this host's interfaces that are of use to other hosts, and those of the
/// loopback interface. Throws HostError if the system does not tell.
std::vector<InterfaceAddress> interface_addresses();

/// Lists them for people: "lo (127.0.0.1), eth0 (10.0.0.2)", or "none".
std::string describe(const std::vector<InterfaceAddress>& addresses);

}  // namespace strata
