#include "launcher/wire/listening_address.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "core/error.h"
#include "core/integer.h"
#include "core/system_call.h"
#include "core/tcp_sockets.h"
#include "core/unique_fd.h"

namespace strata::launcher {
namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// Resolves without asking anything but the system's resolver; `flags` as for getaddrinfo(3).
AddressList resolve(const std::string& name, int port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0)
    throw HostError(fmt::format("cannot find the host {}: {}", name, ::gai_strerror(error)));
  return {found, &::freeaddrinfo};
}

std::string text_of(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST];
  const int error = ::getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  if (error != 0)
    throw HostError(fmt::format("cannot write an address as text: {}", ::gai_strerror(error)));
  return text;
}

}  // namespace

std::string host_and_port(const std::string& address, int port) {
  const bool is_v6 = address.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

std::pair<std::string, int> parse_host_and_port(const std::string& option,
                                                const std::string& text) {
  const std::size_t colon = text.rfind(':');
  std::string address = text.substr(0, colon);
  const std::int64_t port =
      colon == std::string::npos ? 0 : parse_integer(text.substr(colon + 1)).value_or(0);
  const bool is_v6 = address.size() > 2 && address.front() == '[' && address.back() == ']';
  if (is_v6) address = address.substr(1, address.size() - 2);
  const bool has_colon = address.find(':') != std::string::npos;
  const bool has_bracket = address.find_first_of("[]") != std::string::npos;
  if (address.empty() || has_colon != is_v6 || has_bracket || port < 1 || port > 65535)
    throw InvalidArgument(fmt::format(
        "{} {}: expected HOST:PORT, as in gpu-07:29500 or [fd00::1]:29500", option, text));
  return {address, static_cast<int>(port)};
}

std::string numeric_address(const std::string& name) {
  const AddressList found = resolve(name, 0, 0);
  const auto* as_v6 = reinterpret_cast<const sockaddr_in6*>(found->ai_addr);
  if (found->ai_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&as_v6->sin6_addr))
    throw ConfigError(
        fmt::format("{} is a link-local address, which leads elsewhere from each interface of each "
                    "host; give a global or private one (ip -6 address show scope global)",
                    name));
  return text_of(found->ai_addr, found->ai_addrlen);
}

bool is_loopback(const std::string& numeric) {
  return numeric.starts_with("127.") || numeric == "::1";
}

void check_listening_address(const std::string& numeric, int port) {
  const AddressList found = resolve(numeric, port, AI_NUMERICHOST | AI_PASSIVE);
  const UniqueFd socket(
      checked(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), "making a socket"));
  const int one = 1;  // what an ended run has left in TIME_WAIT holds no port
  checked(::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one),
          "setting up a socket");
  if (::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0 &&
      ::listen(socket.get(), 1) == 0)
    return;
  const int error = errno;
  std::string advice;
  if (error == EADDRINUSE)
    advice =
        fmt::format("; {} has the port: name another one with --master-port, the same on all hosts",
                    holder_of_port(port));
  if (error == EADDRNOTAVAIL)
    advice = "; it is no address of this host, which watches over the run";
  throw HostError(fmt::format("cannot listen at {}: {}{}", host_and_port(numeric, port),
                              std::strerror(error), advice));
}

std::string address_towards(const std::string& numeric, int port) {
  const AddressList found = resolve(numeric, port, AI_NUMERICHOST);
  const UniqueFd socket(
      checked(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), "making a socket"));
  if (::connect(socket.get(), found->ai_addr, found->ai_addrlen) != 0)
    throw HostError(fmt::format("there is no way to {}: {}", numeric, std::strerror(errno)));
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  auto* address = reinterpret_cast<sockaddr*>(&own);
  checked(::getsockname(socket.get(), address, &length), "reading a socket's address");
  return text_of(address, length);
}

}  // namespace strata::launcher
