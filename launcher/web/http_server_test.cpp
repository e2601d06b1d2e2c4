#include "launcher/web/http_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "core/error.h"
#include "core/unique_fd.h"

namespace strata::launcher {
namespace {

class HttpServerTest : public ::testing::Test {
 protected:
  UniqueFd connect() {
    UniqueFd peer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    connect(peer);
    return peer;
  }
  void connect(const UniqueFd& peer) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(server_.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(peer.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  static void say(const UniqueFd& peer, const std::string& text) {
    (void)::send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  /// Lets the server work until it has sent all that it will.
  std::string heard(const UniqueFd& peer) {
    std::string text;
    std::array<char, 65536> bytes;
    for (int silent = 0; silent < 20;) {
      pollfd entry{server_.poll_fd(), POLLIN, 0};
      if (::poll(&entry, 1, 5) > 0) server_.work();
      const ssize_t count = ::recv(peer.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count == 0) break;
      silent = count < 0 ? silent + 1 : 0;
      if (count > 0) text.append(bytes.data(), static_cast<std::size_t>(count));
    }
    return text;
  }
  std::string ask(const std::string& request) {
    const UniqueFd peer = connect();
    say(peer, request);
    return heard(peer);
  }
  std::string get(const std::string& path, const std::string& host = "127.0.0.1:80",
                  const std::string& method = "GET") {
    return ask(method + " " + path + " HTTP/1.1\r\nHost: " + host +
               "\r\nConnection: close\r\n\r\n");
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  std::string status_ = "{\"runs\":[]}";
  HttpServer server_{0,
                     {[this] { return status_; }, [] { return std::string("{\"step\":[]}"); },
                      []() -> std::string { throw HostError("no figures"); }}};
};

TEST_F(HttpServerTest, ShowsThePageAndWhatItAsksFor) {
  const std::string page = get("/");
  EXPECT_TRUE(page.starts_with("HTTP/1.1 200 OK\r\n")) << page;
  EXPECT_TRUE(has(page, "Content-Security-Policy: default-src 'none'"));
  EXPECT_TRUE(has(page, "<title>Strata run</title>") && has(page, "</html>"));
  const std::string status = get("/status.json?now", "localhost");
  EXPECT_TRUE(has(status, "Content-Type: application/json\r\n"));
  EXPECT_TRUE(has(status, "Cache-Control: no-store\r\n"));
  EXPECT_TRUE(status.ends_with("\r\n\r\n{\"runs\":[]}"));
  EXPECT_TRUE(get("/history.json").ends_with("{\"step\":[]}"));
}

TEST_F(HttpServerTest, RefusesAllElse) {
  for (const char* path : {"/index.html", "/..", "//", "/status.json/", "/etc/passwd", "*"})
    EXPECT_TRUE(get(path).starts_with("HTTP/1.1 404 ")) << path;
  for (const char* method : {"POST", "PUT", "DELETE", "HEAD", "OPTIONS", "TRACE", "STOP"}) {
    const std::string answer = get("/status.json", "localhost", method);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 405 ")) << method << answer;
    EXPECT_TRUE(has(answer, "Allow: GET\r\n"));
  }
  for (const char* host : {"example.org", "127.0.0.1.example.org", "localhost:80:90", "10.0.0.1",
                           "localhost:x", "::1", ""})
    EXPECT_TRUE(get("/", host).starts_with("HTTP/1.1 403 ")) << host;
  EXPECT_TRUE(has(ask("GET / HTTP/1.0\r\n\r\n"), " 403 "));
  EXPECT_TRUE(has(get("/metrics"), " 500 ")) << "what fails is no reason for the run to end";
}

TEST_F(HttpServerTest, ABodyIsNotWaitedFor) {
  const std::string answer =
      ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\nx");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 405 ")) << answer;
}

TEST_F(HttpServerTest, OwnNamesMayHaveAPort) {
  for (const char* name : {"localhost", "localhost:1", "127.0.0.1:65535", "[::1]", "[::1]:80"})
    EXPECT_TRUE(is_own_name(name)) << name;
  for (const char* name : {"[::1", "[::2]:80", "LOCALHOST.", "localhost.example.org:80", ":80"})
    EXPECT_FALSE(is_own_name(name)) << name;
}

TEST_F(HttpServerTest, GarbageEndsItsConnectionAlone) {
  for (const std::string& garbage :
       {std::string(100'000, 'x'), std::string("\x16\x03\x01\0\xff\n\n", 7),
        std::string("GET / HTTP/1.1\r\n") + std::string(100'000, 'h') + ": x\r\n\r\n",
        std::string("GET\r\n\r\n")}) {
    const std::string answer = ask(garbage);
    EXPECT_FALSE(has(answer, " 200 ")) << answer;
  }
  EXPECT_TRUE(has(get("/"), " 200 "));
}

TEST_F(HttpServerTest, WhoDoesNotReadHoldsUpNobody) {
  status_ = std::string(8'000'000, 'x');
  std::vector<UniqueFd> lazy;
  for (int i = 0; i < 10; ++i) {
    lazy.push_back(connect());
    say(lazy.back(), "GET /status.json HTTP/1.1\r\nHost: localhost\r\n\r\n");
  }
  EXPECT_TRUE(has(get("/history.json"), " 200 "));
  lazy.clear();  // the server writes into connections that are closed: no signal comes of it
  EXPECT_TRUE(has(get("/history.json"), " 200 "));
  EXPECT_TRUE(server_.timeout() == std::nullopt || server_.timeout()->count() <= 10'000);
}

TEST_F(HttpServerTest, OtherUsersSeeFiguresAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play another user";
  const auto get_as_other = [this](const std::string& path) {
    EXPECT_EQ(::seteuid(65534), 0);
    const UniqueFd peer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::seteuid(0), 0);
    connect(peer);
    say(peer, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return heard(peer);
  };
  for (const char* path : {"/", "/status.json", "/history.json", "/no"})
    EXPECT_TRUE(has(get_as_other(path), " 403 Forbidden\r\n")) << path;
  EXPECT_TRUE(has(get_as_other("/metrics"), "no figures")) << "what metrics say";
}

// Fault 32.
TEST_F(HttpServerTest, APortInUseIsRefused) {
  try {
    HttpServer second(server_.port(), {});
    FAIL();
  } catch (const HostError& error) {
    EXPECT_TRUE(has(error.what(), "(web_server_test) has the port: name another one, or 0"));
  }
}

TEST_F(HttpServerTest, OnlyThisHostReachesIt) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(server_.port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);  // 127.0.0.2
  const UniqueFd peer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_NE(::connect(peer.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
}

}  // namespace
}  // namespace strata::launcher
