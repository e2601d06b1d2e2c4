#include "core/network_interfaces.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <array>
#include <memory>

#include "core/system_call.h"

namespace strata {
namespace {

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

}  // namespace

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

std::string describe(const std::vector<InterfaceAddress>& addresses) {
  std::string text;
  for (const InterfaceAddress& one : addresses)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", one.name, one.address);
  return text.empty() ? "none" : text;
}

}  // namespace strata
