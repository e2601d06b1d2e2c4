#include "launcher/views/control_socket.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "core/testing/test_directory.h"

namespace strata::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kRun = "0123456789abcdef";

class ControlSocketTest : public ::testing::Test {
 protected:
  UniqueFd connect() { return std::move(*ControlFolder::make(home_ / "runs").connect(kRun)); }
  static void say(const UniqueFd& peer, const std::string& text) {
    (void)::send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  UniqueFd ask(const std::string& text) {
    UniqueFd peer = connect();
    say(peer, text);
    work();
    return peer;
  }
  void work(milliseconds later = {}) {
    now_ += later;
    for (int turn = 0; turn < 3; ++turn) socket_.work(now_);
  }
  /// What the run has sent so far; "(open)" follows if the connection has not ended.
  static std::string heard(const UniqueFd& peer) {
    std::string text;
    std::array<char, 4096> bytes;
    for (;;) {
      const ssize_t count = ::recv(peer.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      if (count > 0) text.append(bytes.data(), static_cast<std::size_t>(count));
      if (count < 0 && errno == EAGAIN) return text + "(open)";
      if (count <= 0) return text;
    }
  }

  const TestDirectory home_;
  TimePoint now_ = TimePoint() + seconds(1000);
  std::string status_ = R"({"run": 1})";
  std::vector<bool> stops_;
  /// Rank 0 has printed a line, rank 1 has not.
  static std::optional<std::string> log(const AskLogs& request, bool ended) {
    if (request.follow && request.rank == 1 && !ended) return {};
    return std::string(ended ? "last" : "line");
  }
  ControlSocket socket_{
      [this] { return ControlFolder::make(home_ / "runs"); },
      kRun,
      {[this] { return status_; },
       [this](bool now) {
         stops_.push_back(now);
         return std::string("{}");
       },
       [this](const AskLogs& request, bool ended) { return log(request, ended); }}};
};

TEST_F(ControlSocketTest, AnswersRequests) {
  EXPECT_EQ(heard(ask("status\n")), "{\"run\": 1}\n");
  EXPECT_EQ(heard(ask("stop\n")), "{}\n");
  EXPECT_EQ(heard(ask("stop now\n")), "{}\n");
  EXPECT_EQ(stops_, (std::vector<bool>{false, true}));
}

TEST_F(ControlSocketTest, AnswersWhoFollowsOnceThereIsALineOrTheEnd) {
  EXPECT_EQ(heard(ask("logs 1 0\n")), "line\n");
  EXPECT_EQ(heard(ask("follow 0 0\n")), "line\n");
  const UniqueFd waits = ask("follow 1 0\n");
  work(seconds(3600));
  EXPECT_EQ(heard(waits), "(open)");
  socket_.end("{\"exit_code\":75}");
  EXPECT_EQ(heard(waits), "last\n");
}

TEST_F(ControlSocketTest, TakesARequestInPieces) {
  const UniqueFd peer = ask("sta");
  EXPECT_EQ(heard(peer), "(open)");
  say(peer, "tus\n");
  work();
  EXPECT_EQ(heard(peer), "{\"run\": 1}\n");
}

TEST_F(ControlSocketTest, RefusesWhatIsNoRequest) {
  for (const std::string& garbage :
       {std::string("stop later\n"), std::string("\n"), std::string("STOP\n"),
        std::string("\0\xff\n", 3), std::string(4097, 's'), std::string("stop\0now\n", 9),
        std::string("logs\n"), std::string("logs all\n"), std::string("logs -1 0\n"),
        std::string("follow all x\n"), std::string("logs all --1\n"), std::string("logs 0 1 2\n")})
    EXPECT_TRUE(heard(ask(garbage)).starts_with("{\"error\":\"known requests are: "));
  const UniqueFd half = connect();
  say(half, "stop");
  ASSERT_EQ(::shutdown(half.get(), SHUT_WR), 0);
  work();
  EXPECT_TRUE(heard(half).starts_with("{\"error\":")) << "a line that was cut off";
  (void)ask(std::string(100'000, 's'));
  EXPECT_TRUE(stops_.empty());
  EXPECT_EQ(heard(ask("status\n")), "{\"run\": 1}\n");
}

TEST_F(ControlSocketTest, EndsConnectionsThatAreSilentOrDoNotRead) {
  const UniqueFd silent = ask("");
  status_ = std::string(4'000'000, 'x');
  const UniqueFd lazy = ask("status\n");
  EXPECT_EQ(*socket_.next_deadline(), now_ + seconds(5));
  work(milliseconds(4999));
  EXPECT_EQ(heard(silent), "(open)");
  work(milliseconds(1));
  EXPECT_EQ(heard(silent), "");
  EXPECT_LT(heard(lazy).size(), 4'000'000U);
  EXPECT_EQ(socket_.next_deadline(), std::nullopt);
}

TEST_F(ControlSocketTest, SendsLongAnswersInPieces) {
  status_ = std::string(4'000'000, 'x');
  const UniqueFd peer = ask("status\n");
  std::string text;
  for (int turn = 0; turn < 1000 && text.size() < 4'000'001; ++turn) {
    text += heard(peer);
    if (text.ends_with("(open)")) text.resize(text.size() - 6);
    work();
  }
  EXPECT_TRUE(text == status_ + "\n") << text.size();
}

TEST_F(ControlSocketTest, ServesOneBesideManyThatAreSilent) {
  const UniqueFd waits = ask("wait\n");
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) {
    silent.push_back(connect());
    if (i % 10 == 9) work();
  }
  EXPECT_EQ(heard(ask("status\n")), "{\"run\": 1}\n");
  std::vector<pollfd> polled;
  socket_.add_polls(polled);
  EXPECT_LE(polled.size(), 17U);
  socket_.end("{\"exit_code\":0}");
  EXPECT_EQ(heard(waits), "{\"exit_code\":0}\n");
}

TEST_F(ControlSocketTest, TellsWhoWaitsHowItEndedAndKeepsThat) {
  const UniqueFd waits = ask("wait\n");
  const UniqueFd gone = ask("wait\n");
  { const UniqueFd also_gone = ask("wait\n"); }
  work(seconds(3600));
  EXPECT_EQ(heard(waits), "(open)");
  std::vector<pollfd> polled;
  socket_.add_polls(polled);
  EXPECT_EQ(polled.size(), 3U) << "who has gone is forgotten";
  socket_.end("{\"exit_code\":75}");
  EXPECT_EQ(heard(waits), "{\"exit_code\":75}\n");
  const ControlFolder left = ControlFolder::make(home_ / "runs");
  EXPECT_TRUE(left.run_ids().empty());
  EXPECT_EQ(left.end_of("0123456789abcdef"), "{\"exit_code\":75}\n");
  work();
}

TEST_F(ControlSocketTest, MakesItselfAgainWhereItWasRemoved) {
  const UniqueFd waits = ask("wait\n");
  std::filesystem::remove_all(home_ / "runs");
  work(milliseconds(9999));
  EXPECT_FALSE(std::filesystem::exists(home_ / "runs"));
  work(milliseconds(1));
  EXPECT_EQ(heard(ask("status\n")), "{\"run\": 1}\n");
  (void)home_.file("in the way", "");
  std::filesystem::remove_all(home_ / "runs");
  std::filesystem::rename(home_ / "in the way", home_ / "runs");
  work(seconds(10));
  std::filesystem::remove(home_ / "runs");
  work(seconds(10));
  EXPECT_EQ(heard(ask("status\n")), "{\"run\": 1}\n");
  socket_.end("{\"exit_code\":1}");
  EXPECT_EQ(heard(waits), "{\"exit_code\":1}\n");
  EXPECT_TRUE(ControlFolder::make(home_ / "runs").run_ids().empty());
}

TEST_F(ControlSocketTest, TakesItsRecordAlongWhereItGoesToAnotherFolder) {
  std::string place = home_ / "first";
  ControlSocket socket([&] { return ControlFolder::make(place); }, kRun, {});
  socket.work(now_);
  socket.keep_record("{}");
  const ControlFolder first = ControlFolder::make(place);
  first.remove(kRun);
  place = home_ / "second";
  socket.work(now_ + seconds(10));
  const ControlFolder second = ControlFolder::make(place);
  EXPECT_EQ(first.record_of(kRun), "") << "or the run would be taken for one that was killed";
  EXPECT_EQ(second.record_of(kRun), "{}\n");
  std::filesystem::remove_all(place);
  socket.work(now_ + seconds(20));
  EXPECT_EQ(ControlFolder::make(place).record_of(kRun), "{}\n") << "also in a new one";
}

TEST_F(ControlSocketTest, LeavesNoRecordOfARunThatEndsByAnException) {
  const auto open = [this] { return ControlFolder::make(home_ / "runs"); };
  const std::string id(16, 'a');
  std::make_unique<ControlSocket>(open, id, ViewAnswers{})->keep_record("{}");
  EXPECT_TRUE(open().recorded_ids().empty());
}

TEST_F(ControlSocketTest, WaitsForDescriptorsWithoutBeingBusy) {
  const UniqueFd peer = connect();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  work();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<pollfd> polled;
  socket_.add_polls(polled);
  EXPECT_LT(polled.front().fd, 0);
  EXPECT_EQ(*socket_.next_deadline(), now_ + seconds(1));
  say(peer, "status\n");
  work(seconds(1));
  EXPECT_EQ(heard(peer), "{\"run\": 1}\n");
}

/// Connects as another user, which only root can.
UniqueFd connect_as(uid_t user, const std::string& path) {
  UniqueFd peer(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::seteuid(user), 0);
  if (::connect(peer.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    peer.close();
  EXPECT_EQ(::seteuid(0), 0);
  return peer;
}

TEST_F(ControlSocketTest, IsClosedToOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const std::string path = home_ / "runs/" + kRun + ".sock";
  EXPECT_FALSE(connect_as(12345, path).valid()) << "the folder is closed to others";
  // Even if they get at the socket somehow, they are not answered.
  ASSERT_EQ(::chmod((home_ / "runs").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  const UniqueFd stranger = connect_as(12345, path), root = connect_as(0, path);
  ASSERT_TRUE(stranger.valid() && root.valid());
  say(stranger, "stop now\n");
  say(root, "status\n");
  work();
  EXPECT_EQ(heard(stranger), "");
  EXPECT_EQ(heard(root), "{\"run\": 1}\n");
  EXPECT_TRUE(stops_.empty());
}

}  // namespace
}  // namespace strata::launcher
