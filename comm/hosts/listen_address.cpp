#include "comm/hosts/listen_address.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <array>
#include <memory>
#include <vector>

#include "core/error.h"
#include "core/system_call.h"

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

/// Returns the address as text; "" for other families and IPv6 addresses of one link alone.
std::string text_of(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* binary = nullptr;
  if (address.sa_family == AF_INET)
    binary = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  if (address.sa_family == AF_INET6) {
    const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
    if (!IN6_IS_ADDR_LINKLOCAL(&six)) binary = &six;
  }
  if (binary == nullptr ||
      ::inet_ntop(address.sa_family, binary, text.data(), text.size()) == nullptr)
    return {};
  return text.data();
}

struct InterfaceAddress {
  std::string name;
  std::string address;
  bool is_ipv4;
};

/// Returns the addresses of this host's interfaces that are of use to other hosts.
std::vector<InterfaceAddress> interface_addresses() {
  ifaddrs* first = nullptr;
  checked(::getifaddrs(&first), "getifaddrs");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> all(first, &::freeifaddrs);
  std::vector<InterfaceAddress> addresses;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const std::string text = text_of(*entry->ifa_addr);
    if (!text.empty())
      addresses.push_back({entry->ifa_name, text, entry->ifa_addr->sa_family == AF_INET});
  }
  return addresses;
}

std::string address_of_interface(const std::string& name) {
  std::string found, names;
  for (const InterfaceAddress& entry : interface_addresses()) {
    if (name == entry.name && (found.empty() || entry.is_ipv4)) found = entry.address;
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", entry.name, entry.address);
  }
  if (found.empty())
    refuse(fmt::format("STRATA_INTERFACE={} names no interface with an address; there are {}", name,
                       names.empty() ? "none" : names));
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
