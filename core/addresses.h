// Addresses of the Internet, as the system's resolver has them.
#pragma once

#include <netdb.h>

#include <memory>
#include <string>

namespace strata {

/// Addresses that getaddrinfo(3) has found: at least one.
using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// Finds the addresses of a host for TCP. `flags` as for getaddrinfo(3): AI_NUMERICHOST asks
/// nobody, so that names are none. Throws HostError for a name that leads nowhere.
AddressList find_addresses(const std::string& host, int port, int flags);

}  // namespace strata
