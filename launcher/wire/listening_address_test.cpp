#include "launcher/wire/listening_address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <memory>
#include <thread>

#include "core/error.h"
#include "core/testing/test_directory.h"
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

TEST(ListeningAddress, NamesAreLookedUpAtOnceAndFailEachByItself) {
  const auto all_begun = std::make_shared<std::latch>(3);
  const auto look_up = [all_begun](const std::string& name) {
    all_begun->arrive_and_wait();  // one after another would wait for ever
    return name == "c" ? "10.0.0.3" : throw HostError("no " + name);
  };
  std::vector<std::future<std::string>> found = look_up_at_once({"a", "b", "c"}, look_up);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(message_of<HostError>([&] { found[0].get(); }), "no a");
  EXPECT_EQ(message_of<HostError>([&] { found[1].get(); }), "no b");
  EXPECT_EQ(found[2].get(), "10.0.0.3");
}

TEST(ListeningAddress, FewOfManyNamesAreLookedUpAtATime) {
  struct Counts {
    std::atomic<int> now = 0, most = 0;
  };
  const auto counts = std::make_shared<Counts>();
  const auto look_up = [counts](const std::string& name) {
    const int now = ++counts->now;
    for (int most = counts->most; most < now && !counts->most.compare_exchange_weak(most, now);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    --counts->now;
    return name + "!";
  };
  std::vector<std::string> names;
  for (int host = 0; host < 200; ++host) names.push_back(std::to_string(host));
  std::vector<std::future<std::string>> found = look_up_at_once(names, look_up);
  ASSERT_EQ(found.size(), names.size());
  for (std::size_t host = 0; host < names.size(); ++host)
    EXPECT_EQ(found[host].get(), names[host] + "!");
  EXPECT_GT(counts->most, 1);
  EXPECT_LE(counts->most, 32);
}

TEST(ListeningAddress, NobodyWaitsForANameThatIsNotAnswered) {
  const auto gate = std::make_shared<std::promise<void>>();
  std::shared_future<void> opened = gate->get_future().share();
  {
    const auto found = look_up_at_once({"a"}, [opened](const std::string& name) {
      opened.wait();
      return name;
    });
    EXPECT_EQ(found[0].wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  }
  gate->set_value();
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
