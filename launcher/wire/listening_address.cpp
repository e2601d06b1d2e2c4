#include "launcher/wire/listening_address.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>

#include "core/addresses.h"
#include "core/error.h"
#include "core/integer.h"
#include "core/system_call.h"
#include "core/tcp_sockets.h"
#include "core/unique_fd.h"

namespace strata::launcher {
namespace {

/// Each has a thread and a socket: a process may have few of both.
constexpr std::size_t kLookUpsAtATime = 32;

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
  const AddressList found = find_addresses(name, 0, 0);
  const auto* as_v6 = reinterpret_cast<const sockaddr_in6*>(found->ai_addr);
  if (found->ai_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&as_v6->sin6_addr))
    throw ConfigError(
        fmt::format("{} is a link-local address, which leads elsewhere from each interface of each "
                    "host; give a global or private one (ip -6 address show scope global)",
                    name));
  return text_of(found->ai_addr, found->ai_addrlen);
}

std::vector<std::future<std::string>> look_up_at_once(
    const std::vector<std::string>& names,
    const std::function<std::string(const std::string&)>& look_up) {
  struct Tasks {
    std::vector<std::packaged_task<std::string()>> all;
    std::atomic<std::size_t> begun = 0;
  };
  const auto tasks = std::make_shared<Tasks>();
  std::vector<std::future<std::string>> found;
  for (const std::string& name : names)
    found.push_back(
        tasks->all.emplace_back([name, look_up] { return look_up(name); }).get_future());
  const auto work = [tasks] {
    for (std::size_t next; (next = tasks->begun++) < tasks->all.size();) tasks->all[next]();
  };
  for (std::size_t thread = 0; thread < std::min(names.size(), kLookUpsAtATime); ++thread) {
    try {
      std::thread(work).detach();
    } catch (const std::system_error& error) {
      if (thread > 0) break;  // those that were started look up all names
      throw HostError(std::string("cannot start a thread to look up a host: ") + error.what());
    }
  }
  return found;
}

bool is_loopback(const std::string& numeric) {
  return numeric.starts_with("127.") || numeric == "::1";
}

void check_listening_address(const std::string& numeric, int port) {
  const AddressList found = find_addresses(numeric, port, AI_NUMERICHOST | AI_PASSIVE);
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
  if (error == EADDRINUSE) {
    const std::string holder = holder_of_port(port);
    const bool is_mlaunch = holder.ends_with("(mlaunch)");
    advice = fmt::format(
        "; {} has the port: {}name another one with --master-port, the same on "
        "all hosts",
        holder,
        is_mlaunch ? "if that is host 0 of this run, this host has another "
                     "--node-rank; if it is another run, "
                   : "");
  }
  if (error == EADDRNOTAVAIL)
    advice = "; it is no address of this host, which watches over the run";
  throw HostError(fmt::format("cannot listen at {}: {}{}", host_and_port(numeric, port),
                              std::strerror(error), advice));
}

std::string address_towards(const std::string& numeric, int port) {
  const AddressList found = find_addresses(numeric, port, AI_NUMERICHOST);
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
