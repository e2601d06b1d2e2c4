#include "core/addresses.h"

#include <fmt/core.h>

#include "core/error.h"

namespace strata {

AddressList find_addresses(const std::string& host, int port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0)
    throw HostError(fmt::format("cannot find the host {}: {}", host, ::gai_strerror(error)));
  return {found, &::freeaddrinfo};
}

}  // namespace strata
