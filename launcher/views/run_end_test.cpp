#include "launcher/views/run_end.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>
#include <thread>

#include "core/testing/test_directory.h"

namespace strata::launcher {
namespace {

using std::chrono::milliseconds;

constexpr const char* kRun = "0123456789abcdef";

class RunEndTest : public ::testing::Test {
 protected:
  /// Takes one connection as a run does, answers, and ends the connection.
  void serve(std::string_view answer) {
    pollfd entry{listening_.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&entry, 1, 5000), 1);
    const UniqueFd peer(::accept(listening_.get(), nullptr, nullptr));
    char request[5] = {};
    EXPECT_EQ(::read(peer.get(), request, sizeof request), 5);
    EXPECT_EQ(std::string_view(request, 5), "wait\n");
    (void)::send(peer.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
  }

  const TestDirectory home_;
  UniqueFd listening_ = ControlFolder::make(home_ / "runs").listen(kRun);
  const RunsOfUser runs_{{home_ / "runs"}};
};

TEST_F(RunEndTest, IsToldByTheRun) {
  EndOfLocalRun end(runs_, kRun);
  EXPECT_FALSE(end.wait(milliseconds(10)));
  serve("{\"run\": \"0123456789abcdef\", \"exit_code\": 75}\n");
  EXPECT_TRUE(end.wait(milliseconds(5000)));
  EXPECT_EQ(end.exit_code(), 75);
  EXPECT_EQ(end.describe(), "run 0123456789abcdef has ended with code 75");
}

TEST_F(RunEndTest, IsAskedForAgainWhereTheRunMadeRoom) {
  EndOfLocalRun end(runs_, kRun);
  std::thread run([this] {
    serve("");
    serve("{\"exit_code\": 0}\n");
  });
  EXPECT_TRUE(end.wait(milliseconds(5000)));
  EXPECT_EQ(end.exit_code(), 0);
  run.join();
}

TEST_F(RunEndTest, IsNotWaitedForLongerThanTheLimit) {
  EndOfLocalRun end(runs_, kRun);
  std::thread run([this] { serve(""); });
  EXPECT_FALSE(end.wait(milliseconds(50)));
  run.join();
}

TEST_F(RunEndTest, HasNoCodeWhereTheRunWasKilled) {
  EndOfLocalRun end(runs_, kRun);
  listening_.close();
  EXPECT_TRUE(end.wait(milliseconds(5000)));
  EXPECT_EQ(end.exit_code(), std::nullopt);
  EXPECT_EQ(end.describe(), "run 0123456789abcdef has ended");
  EXPECT_TRUE(EndOfLocalRun(runs_, kRun).wait(milliseconds(0))) << "it had ended before";
}

}  // namespace
}  // namespace strata::launcher
