#include "launcher/wire/listening_address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/error.h"
#include "core/unique_fd.h"

namespace strata::launcher {
namespace {

TEST(ListeningAddress, IsWrittenWithItsPort) {
  EXPECT_EQ(host_and_port("10.0.0.1", 29500), "10.0.0.1:29500");
  EXPECT_EQ(host_and_port("fe80::1", 1), "[fe80::1]:1");
}

TEST(ListeningAddress, IsReadWithItsPort) {
  using Parts = std::pair<std::string, int>;
  EXPECT_EQ(parse_host_and_port("--at", "10.0.0.1:29500"), Parts("10.0.0.1", 29500));
  EXPECT_EQ(parse_host_and_port("--at", "gpu-07:1"), Parts("gpu-07", 1));
  EXPECT_EQ(parse_host_and_port("--at", "[fe80::1]:65535"), Parts("fe80::1", 65535));
  for (const char* text : {"", ":", "a", "a:", ":1", "a:0", "a:65536", "a:1x", "a: 1", "fe80::1:1",
                           "[]:1", "[a]:1", "fe80::1", "a:-1"})
    EXPECT_THROW((void)parse_host_and_port("--at", text), InvalidArgument) << text;
}

TEST(ListeningAddress, NamesBecomeNumbers) {
  EXPECT_EQ(numeric_address("10.1.2.3"), "10.1.2.3");
  EXPECT_TRUE(is_loopback(numeric_address("localhost")));
  EXPECT_FALSE(is_loopback("10.1.2.3"));
  EXPECT_THROW((void)numeric_address("no.such.host.invalid"), HostError);
  EXPECT_EQ(numeric_address("fd00::1"), "fd00::1");
  for (const char* scoped : {"fe80::1%lo", "fe80::1"})
    EXPECT_THROW((void)numeric_address(scoped), ConfigError) << scoped;
}

// Fault 32.
TEST(ListeningAddress, APortInUseAndAForeignAddressAreRefused) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(socket.get(), generic, length), 0);
  ASSERT_EQ(::listen(socket.get(), 1), 0);
  ASSERT_EQ(::getsockname(socket.get(), generic, &length), 0);
  const int port = ntohs(address.sin_port);
  const auto refusal = [](const std::string& numeric, int at) -> std::string {
    try {
      check_listening_address(numeric, at);
      return "";
    } catch (const HostError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal("127.0.0.1", 0), "");
  EXPECT_NE(refusal("127.0.0.1", port).find("(launcher_test) has the port"), std::string::npos);
  EXPECT_NE(refusal("192.0.2.1", 0).find("no address of this host"), std::string::npos);
}

TEST(ListeningAddress, AHostIsReachedByTheAddressOnTheWay) {
  EXPECT_EQ(address_towards("127.0.0.1", 1), "127.0.0.1");
}

}  // namespace
}  // namespace strata::launcher
