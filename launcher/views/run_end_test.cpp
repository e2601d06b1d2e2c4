#include "launcher/views/run_end.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>
#include <thread>

#include "core/host_name.h"
#include "core/testing/test_directory.h"
#include "launcher/group/process_start.h"

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

  /// Keeps a record of a run whose mlaunch is this process, if it began at `start`.
  void keep_record(std::int64_t start) {
    ControlFolder::make(home_ / "runs")
        .keep_record(
            kRun, fmt::format(R"({{"run":"0123456789abcdef","state":"killed","process":{},)"
                              R"("process_start":{},"host":"{}","seen_at":"2026-11-29T01:02:03Z",)"
                              R"("committed_step":40,"checkpoint":"out/step-40",)"
                              R"("log_folder":"/logs"}})",
                              ::getpid(), start, host_name()));
  }

  static constexpr std::int64_t kNeverBegan = 1;
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

TEST_F(RunEndTest, IsWhatIsKnownWhereTheRunWasKilled) {
  keep_record(kNeverBegan);
  EndOfLocalRun end(runs_, kRun);
  listening_.close();
  EXPECT_TRUE(end.wait(milliseconds(5000)));
  EXPECT_EQ(end.exit_code(), std::nullopt);
  EXPECT_EQ(
      end.describe(),
      fmt::format("run 0123456789abcdef has ended without a report: its mlaunch (process {} on {}) "
                  "was killed, or the host went down; it was seen last at 2026-11-29T01:02:03Z\n"
                  "step 40 is saved in out/step-40; the same command with --resume auto goes on "
                  "from there\nits logs and reports are in /logs",
                  ::getpid(), host_name()));
}

TEST_F(RunEndTest, HasNotComeWhereOnlyTheSocketIsGone) {
  keep_record(*process_start(::getpid()));
  EndOfLocalRun end(runs_, kRun);
  listening_.close();
  EXPECT_FALSE(end.wait(milliseconds(300))) << "its process goes on";
  keep_record(kNeverBegan);
  EXPECT_TRUE(end.wait(milliseconds(5000)));
  EXPECT_TRUE(end.describe().starts_with("run 0123456789abcdef has ended without a report"));
}

TEST_F(RunEndTest, TellsOfRanksThatHadToBeKilled) {
  EXPECT_EQ(
      describe_end(parse_json(R"({"run":"01","exit_code":75,"killed":[0,2]})", "end", {})),
      "run 01 has ended with code 75\n2 of its ranks did not end in time and had to be killed: "
      "what they did since the last checkpoint is lost");
  EXPECT_EQ(
      describe_end(parse_json(R"({"run":"01","exit_code":130,"killed":[0,2]})", "end", {})),
      "run 01 has ended with code 130\n2 of its ranks did not end in time and had to be killed: "
      "what they did since the last checkpoint is lost")
      << "after one Ctrl-C";
  EXPECT_EQ(
      describe_end(parse_json(
          R"({"run":"01","exit_code":130,"killed":[0,2],"killed_on_request":true})", "end", {})),
      "run 01 has ended with code 130\n2 of its ranks were killed on request: what they did since "
      "the last checkpoint is lost")
      << "after Ctrl-C twice";
}

}  // namespace
}  // namespace strata::launcher
