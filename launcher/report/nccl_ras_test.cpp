#include "launcher/report/nccl_ras.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string_view>
#include <thread>

#include "core/system_call.h"
#include "core/unique_fd.h"

namespace strata::launcher {
namespace {

using std::chrono::milliseconds;
constexpr std::chrono::seconds kAtLast{180};
constexpr milliseconds kSoon{100};

void say(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (count <= 0) return;  // who asked has heard enough
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string hear(int socket) {
  std::string line;
  for (char letter = 0; !line.ends_with('\n') && ::recv(socket, &letter, 1, 0) == 1;)
    line += letter;
  return line;
}

/// Stands in for NCCL's service, for one connection.
class Service {
 public:
  explicit Service(const std::function<void(int socket)>& serve)
      : listener_(checked(::socket(AF_INET, SOCK_STREAM, 0), "making a socket")) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof place;
    auto* address = reinterpret_cast<sockaddr*>(&place);
    checked(::bind(listener_.get(), address, bytes), "binding a socket");
    checked(::listen(listener_.get(), 1), "listening");
    checked(::getsockname(listener_.get(), address, &bytes), "reading a port");
    port_ = ntohs(place.sin_port);
    serving_ = std::jthread([this, serve] {
      const UniqueFd socket(::accept(listener_.get(), nullptr, nullptr));
      if (socket.valid()) serve(socket.get());
    });
  }
  ~Service() { (void)::shutdown(listener_.get(), SHUT_RDWR); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] int port() const { return port_; }

 private:
  UniqueFd listener_;
  int port_ = 0;
  std::jthread serving_;
};

/// Talks as NCCL does until it is asked for its status; returns false if it is not.
bool greet(int socket) {
  if (hear(socket) != "CLIENT PROTOCOL 2\n") return false;
  say(socket, "SERVER PROTOCOL 2\n");
  if (hear(socket) != "TIMEOUT 1\n") return false;
  say(socket, "OK\n");
  return hear(socket) == "VERBOSE STATUS\n";
}

TEST(NcclRas, HasTheLinesOfTheService) {
  const Service service([](int socket) {
    if (greet(socket)) say(socket, "NCCL version 2.28\n  Rank 3 has launched 17 of 18\n");
  });
  EXPECT_EQ(nccl_status("localhost", service.port(), kAtLast),
            "NCCL version 2.28\n  Rank 3 has launched 17 of 18\n");
}

TEST(NcclRas, WaitsForNobodyWhoIsSilent) {
  const Service never([](int socket) { (void)hear(socket), (void)hear(socket); });
  EXPECT_EQ(nccl_status("localhost", never.port(), kSoon), "");
}

TEST(NcclRas, KeepsWhatCameInTime) {
  std::string text;
  for (milliseconds limit = kSoon; text.empty() && limit < kAtLast; limit *= 2) {
    const Service hangs([](int socket) {
      if (!greet(socket)) return;
      say(socket, "NCCL version 2.28\n");
      (void)hear(socket);
    });
    text = nccl_status("localhost", hangs.port(), limit);
    if (text == "(no more has come in time)") text.clear();  // this machine was too busy
  }
  EXPECT_EQ(text, "NCCL version 2.28\n\n(no more has come in time)");
}

TEST(NcclRas, BelievesNobodyElse) {
  for (const char* words : {"HTTP/1.1 400 Bad Request\r\n\r\n", "\x80\xff\n\n\n", ""}) {
    const Service stranger([words](int socket) { say(socket, words); });
    EXPECT_EQ(nccl_status("localhost", stranger.port(), kAtLast), "") << words;
  }
  const Service endless([](int socket) { say(socket, std::string(10 << 20, 'x')); });
  EXPECT_EQ(nccl_status("localhost", endless.port(), kAtLast), "");
}

TEST(NcclRas, KeepsTheBeginningOfALongAnswer) {
  const Service service([](int socket) {
    if (greet(socket)) say(socket, std::string(10 << 20, 'x'));
  });
  EXPECT_EQ(nccl_status("localhost", service.port(), kAtLast),
            std::string(kMostRasBytes, 'x') + "\n(more is left out)");
}

TEST(NcclRas, IsNotThere) {
  int closed = 0;
  {
    const Service ended([](int) {});
    closed = ended.port();
  }
  EXPECT_EQ(nccl_status("localhost", closed, kSoon), "");
  for (const char* wrong : {"", "no host", "example.invalid"})
    EXPECT_EQ(nccl_status(wrong, closed, kSoon), "") << wrong;
}

}  // namespace
}  // namespace strata::launcher
