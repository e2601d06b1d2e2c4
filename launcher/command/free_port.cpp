#include "launcher/command/free_port.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <random>

#include "core/error.h"
#include "core/system_call.h"
#include "core/unique_fd.h"

namespace strata::launcher {
namespace {

// Ports below those that the kernel assigns: its ip_local_port_range begins at 32768.
constexpr int kLowest = 20'000, kHighest = 32'000;
constexpr int kAttempts = 200;

bool is_free(int port) {
  const UniqueFd socket(checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                                "creating a socket to look for a free port"));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

int find_free_port() {
  std::random_device seed;
  std::minstd_rand numbers(seed());
  std::uniform_int_distribution<int> ports(kLowest, kHighest);
  for (int attempt = 0; attempt < kAttempts; ++attempt)
    if (const int port = ports(numbers); is_free(port)) return port;
  throw HostError(fmt::format(
      "found no free TCP port from {} to {} for MASTER_PORT; name one with --master_port", kLowest,
      kHighest));
}

}  // namespace strata::launcher
