#include "launcher/report/nccl_ras.h"

#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "core/addresses.h"
#include "core/error.h"
#include "core/unique_fd.h"

namespace strata::launcher {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kDefaultAddress = "localhost:28028";
constexpr std::size_t kMostLineBytes = 1024;
constexpr std::string_view kGreeting = "CLIENT PROTOCOL 2\n", kGreeted = "SERVER PROTOCOL ";
/// For which the service waits for that of other processes, in seconds.
constexpr std::string_view kPatience = "TIMEOUT 1\n", kAgreed = "OK\n";
constexpr std::string_view kQuestion = "VERBOSE STATUS\n";

/// A connection that gives up at a point in time.
class RasConnection {
 public:
  RasConnection(const addrinfo& place, Clock::time_point end) : end_(end) {
    constexpr int kKind = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
    socket_ = UniqueFd(::socket(place.ai_family, kKind, 0));
    if (!socket_.valid()) return;
    is_open_ = ::connect(socket_.get(), place.ai_addr, place.ai_addrlen) == 0 ||
               (errno == EINPROGRESS && wait(POLLOUT) && has_no_error());
  }
  [[nodiscard]] bool is_open() const { return is_open_; }

  bool write(std::string_view text) {
    while (!text.empty() && wait(POLLOUT)) {
      const ssize_t count = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    }
    return text.empty();
  }
  /// Returns a line with its newline; what came of it if there is none, or if it is too long.
  std::string read_line() {
    std::string line;
    while (line.size() < kMostLineBytes && !line.ends_with('\n') && read_some(line, 1)) continue;
    return line;
  }
  /// Reads on to the end; false: it has not come, or `text` has its most bytes.
  bool read_all(std::string& text) {
    while (text.size() < kMostRasBytes)
      if (!read_some(text, kMostRasBytes - text.size())) return is_at_end_;
    return false;
  }

 private:
  [[nodiscard]] bool wait(short what) const {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
      pollfd entry{socket_.get(), what, 0};
      const int ready = left > 0 ? ::poll(&entry, 1, static_cast<int>(left)) : 0;
      if (ready >= 0 || errno != EINTR) return ready > 0;
    }
  }
  [[nodiscard]] bool has_no_error() const {
    int error = 0;
    socklen_t bytes = sizeof error;
    return ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error == 0;
  }
  /// Appends up to `most` bytes; false: no more come.
  bool read_some(std::string& text, std::size_t most) {
    std::array<char, 4096> bytes;
    while (wait(POLLIN)) {
      const ssize_t count = ::recv(socket_.get(), bytes.data(), std::min(most, bytes.size()), 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      is_at_end_ = count == 0;
      if (count <= 0) return false;
      text.append(bytes.data(), static_cast<std::size_t>(count));
      return true;
    }
    return false;
  }

  UniqueFd socket_;
  const Clock::time_point end_;
  bool is_open_ = false, is_at_end_ = false;
};

/// Asks who listens there; "": nobody does in this protocol.
std::string status_at(const addrinfo& place, Clock::time_point end) {
  RasConnection service(place, end);
  if (!service.is_open() || !service.write(kGreeting) ||
      !service.read_line().starts_with(kGreeted) || !service.write(kPatience) ||
      service.read_line() != kAgreed || !service.write(kQuestion))
    return "";
  std::string text;
  if (!service.read_all(text))
    text +=
        fmt::format("{}({})", text.empty() ? "" : "\n",
                    text.size() < kMostRasBytes ? "no more has come in time" : "more is left out");
  return text;
}

}  // namespace

std::string ras_address() {
  const char* chosen = std::getenv("NCCL_RAS_ADDR");
  return chosen != nullptr ? chosen : kDefaultAddress;
}

std::string nccl_status(const std::string& address, int port, std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  // Other names are not looked up: that may take longer than the limit.
  const bool is_local = address == "localhost";
  for (const char* local : {"127.0.0.1", "::1"}) {
    try {
      const AddressList found = find_addresses(is_local ? local : address, port, AI_NUMERICHOST);
      std::string text = status_at(*found, end);
      if (!text.empty() || !is_local) return text;
    } catch (const HostError&) {
      return "";
    }
  }
  return "";
}

}  // namespace strata::launcher
