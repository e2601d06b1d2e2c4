#include "core/host_meeting.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "core/error.h"
#include "core/store_message.h"
#include "core/testing/meeting_testing.h"

namespace strata {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(HostMeeting, ALateRankZeroIsWaitedFor) {
  const auto second = meet_on_host(meeting(1));
  std::thread waiting([&] { EXPECT_EQ(second->get("key", seconds(5)), "value"); });
  std::this_thread::sleep_for(milliseconds(100));
  const auto first = meet_on_host(meeting(0));
  first->put("key", "value");
  waiting.join();
}

TEST(HostMeeting, ARankZeroThatDoesNotComeIsAPeerError) {
  HostMeeting alone = meeting(1);
  alone.patience = milliseconds(100);
  EXPECT_THROW(meet_on_host(alone)->get("key", seconds(5)), PeerError);
}

TEST(HostMeeting, ARankZeroThatEndsIsAPeerError) {
  auto first = meet_on_host(meeting(0));
  const auto second = meet_on_host(meeting(1));
  second->put("key", "value");
  std::thread end([&] {
    std::this_thread::sleep_for(milliseconds(50));
    first.reset();
  });
  EXPECT_THROW(second->get("never", seconds(30)), PeerError);
  end.join();
}

// Fault 31.
TEST(HostMeeting, TwoRunsAtOnePlaceAreRefused) {
  const auto first = meet_on_host(meeting(0));
  EXPECT_THROW(meet_on_host(meeting(0)), ConfigError);
  const auto second = meet_on_host(meeting(1));
  second->put("key", "value");
  EXPECT_THROW(meet_on_host(meeting(1))->put("key", "value"), ConfigError) << "it is there already";
  EXPECT_THROW(meet_on_host(meeting(2, 3))->put("key", "value"), ConfigError) << "another world";
  EXPECT_EQ(first->get("key", seconds(5)), "value");
}

/// The name (without its zero byte) of the socket at which ranks of this process meet.
std::string meeting_name() {
  std::set<std::string> own;  // "socket:[123]"
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code closed;
    own.insert(std::filesystem::read_symlink(entry.path(), closed).string());
  }
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    std::istringstream words(line);
    std::string word, inode, name;
    for (int column = 0; column < 6; ++column) words >> word;
    words >> inode >> name;
    if (name.starts_with("@strata/") && own.contains("socket:[" + inode + "]"))
      return name.substr(1);
  }
  return "";
}

/// Joins as rank 1 of 2 from a process of user `user`; returns true if rank 0 answers.
bool is_welcome(const std::string& name, uid_t user) {
  const pid_t child = ::fork();
  if (child == 0) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    StoreMessage message;
    message.key = "join";
    message.value = "rank 1 of 2";
    const bool answered =
        ::setresuid(user, user, user) == 0 &&
        ::connect(socket, reinterpret_cast<const sockaddr*>(&address), bytes) == 0 &&
        send_message(socket, message) &&
        receive_message(socket, message) == ReceiveStatus::received;
    ::_exit(answered ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status) == 1;
}

TEST(HostMeeting, ProcessesOfOtherUsersAreNoRanks) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root: a process of another user joins";
  constexpr uid_t kNobody = 65534;
  const auto first = meet_on_host(meeting(0));
  const std::string name = meeting_name();
  ASSERT_NE(name, "");
  EXPECT_FALSE(is_welcome(name, kNobody));
  EXPECT_TRUE(is_welcome(name, ::geteuid()));
}

}  // namespace
}  // namespace strata
