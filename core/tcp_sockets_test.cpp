#include "core/tcp_sockets.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "core/testing/test_directory.h"
#include "core/unique_fd.h"

namespace strata {
namespace {

class TcpSockets : public ::testing::TestWithParam<int> {
 protected:
  TcpSockets() {
    const bool is_v6 = GetParam() == AF_INET6;
    if (is_v6) {
      auto& v6 = reinterpret_cast<sockaddr_in6&>(address_);
      v6.sin6_family = AF_INET6;
      v6.sin6_addr = in6addr_loopback;
    } else {
      auto& v4 = reinterpret_cast<sockaddr_in&>(address_);
      v4.sin_family = AF_INET;
      v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    length_ = is_v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  }
  sockaddr* address() { return reinterpret_cast<sockaddr*>(&address_); }

  sockaddr_storage address_{};
  socklen_t length_;
};

TEST_P(TcpSockets, TellWhoseTheyAre) {
  const UniqueFd listener(::socket(GetParam(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(listener.get(), address(), length_) != 0) GTEST_SKIP() << "there is no such loopback";
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  ASSERT_EQ(::getsockname(listener.get(), address(), &length_), 0);
  const int port = ntohs(reinterpret_cast<const sockaddr_in&>(address_).sin_port);
  EXPECT_TRUE(holder_of_port(port).starts_with(fmt::format("process {} (", ::getpid())))
      << holder_of_port(port);
  const pid_t own = ::getpid(), other = ::getppid();
  EXPECT_TRUE(any_listens({&own, 1}, port));
  EXPECT_FALSE(any_listens({&other, 1}, port));

  const bool is_root = ::geteuid() == 0;
  const uid_t user = is_root ? 65534 : ::geteuid();
  ASSERT_EQ(::seteuid(user), 0);
  const UniqueFd peer(::socket(GetParam(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::seteuid(is_root ? 0 : user), 0);
  ASSERT_EQ(::connect(peer.get(), address(), length_), 0);
  const UniqueFd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_EQ(user_of_peer(accepted.get()), user);
  EXPECT_EQ(user_of_peer(peer.get()), ::geteuid()) << "of the listener's process";
  EXPECT_EQ(user_of_peer(listener.get()), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Families, TcpSockets, ::testing::Values(AF_INET, AF_INET6),
                         [](const auto& family) {
                           return family.param == AF_INET ? "IPv4" : "IPv6";
                         });

TEST(HolderOfPort, IsNamedAsFarAsItMayBeSeen) {
  const TestDirectory proc;
  std::filesystem::create_directory(proc / "net");
  (void)proc.file(
      "net/tcp",
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
      "   0: 0100007F:1F90 0100007F:D431 01 00000000:00000000 00:00000000 00000000  7 0 41 1\n"
      "   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0 0 42 1\n");
  EXPECT_EQ(holder_of_port(8080, proc.path()), "a process of user root");
  EXPECT_EQ(holder_of_port(8081, proc.path()), "another program");
  std::filesystem::create_directories(proc / "77/fd");
  (void)proc.file("77/comm", "python3\n");
  std::filesystem::create_symlink("socket:[42]", proc / "77/fd/3");
  EXPECT_EQ(holder_of_port(8080, proc.path()), "process 77 (python3)");

  const auto listens = [&](std::vector<pid_t> processes, int port) {
    return any_listens(processes, port, proc.path());
  };
  EXPECT_TRUE(listens({76, 77}, 8080));
  EXPECT_FALSE(listens({76}, 8080));
  EXPECT_FALSE(listens({77}, 8081));
  std::filesystem::create_directories(proc / "78/fd");
  std::filesystem::create_symlink("socket:[41]", proc / "78/fd/3");
  EXPECT_FALSE(listens({78}, 8080)) << "it has a connection there";
}

}  // namespace
}  // namespace strata
