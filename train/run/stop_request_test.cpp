// Sends signals to this process, as a launcher or a job scheduler does.
#include "train/run/stop_request.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <thread>
#include <tuple>
#include <utility>

#include "core/error.h"

namespace strata::train {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr StopLimits kNoLimit;
const StopRequest::TooLate kNever = [](const std::string& why) { ADD_FAILURE() << why; };

bool comes(const StopRequest& stop) {
  const Clock::time_point end = Clock::now() + seconds(10);
  while (!stop.requested() && Clock::now() < end) std::this_thread::yield();
  return stop.requested();
}

TEST(StopRequest, SignalsAreSeenAndDoNotKill) {
  for (const int signal : {SIGTERM, SIGUSR1, SIGHUP}) {
    StopRequest stop(kNoLimit, kNever);
    EXPECT_FALSE(stop.requested());
    ASSERT_EQ(::kill(::getpid(), signal), 0);
    EXPECT_TRUE(comes(stop));
  }
}

TEST(StopRequest, ThreadsStartedAfterwardsLeaveTheSignalAlone) {
  StopRequest stop(kNoLimit, kNever);
  std::thread([] { ASSERT_EQ(::kill(::getpid(), SIGTERM), 0); }).join();
  EXPECT_TRUE(comes(stop));
}

TEST(StopRequest, WhatWasIgnoredStaysIgnored) {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGHUP, &ignore, &before), 0);  // as nohup does
  {
    StopRequest stop(kNoLimit, kNever);
    ASSERT_EQ(::kill(::getpid(), SIGHUP), 0);
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_FALSE(stop.requested());
  }
  ASSERT_EQ(::sigaction(SIGHUP, &before, nullptr), 0);
}

TEST(StopRequestDeathTest, AnInterruptIsToldAndKills) {
  EXPECT_EXIT(
      {
        StopRequest stop(kNoLimit, kNever,
                         [](const char* signal) { std::fprintf(stderr, "told of %s\n", signal); });
        ::kill(::getpid(), SIGINT);
        std::this_thread::sleep_for(seconds(20));
        ::_exit(2);
      },
      testing::KilledBySignal(SIGINT), "told of Ctrl-C");
}

TEST(StopRequestDeathTest, WhereNoneIsARequestEachIsToldAndKills) {
  const std::pair<int, const char*> rows[] = {{SIGTERM, "told of SIGTERM"},
                                              {SIGUSR1, "told of SIGUSR1"},
                                              {SIGHUP, "told of SIGHUP"},
                                              {SIGINT, "told of Ctrl-C"}};
  for (const auto& [signal, told] : rows)
    EXPECT_EXIT(
        {
          StopRequest stop([](const char* name) { std::fprintf(stderr, "told of %s\n", name); });
          ::kill(::getpid(), signal);
          std::this_thread::sleep_for(seconds(20));
          ::_exit(2);
        },
        testing::KilledBySignal(signal), told);
}

TEST(StopRequest, ASecondSignalAtOnceIsTheSameRequest) {
  StopRequest stop(kNoLimit, kNever);
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  ASSERT_TRUE(comes(stop));
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);  // would kill if it were not taken
}

TEST(StopRequestDeathTest, ALaterOneKills) {
  for (const int signal : {SIGTERM, SIGUSR1})
    EXPECT_EXIT(
        {
          StopRequest stop(kNoLimit, kNever);
          ::kill(::getpid(), SIGTERM);
          if (!comes(stop)) ::_exit(1);
          std::this_thread::sleep_for(kSameRequest + milliseconds(100));
          ::kill(::getpid(), signal);
          std::this_thread::sleep_for(seconds(20));
          ::_exit(2);
        },
        testing::KilledBySignal(signal), "");
}

TEST(StopRequestDeathTest, TheLimitCountsFromTheSignal) {
  const std::tuple<int, int, const char*> rows[] = {{SIGTERM, 300, "^SIGTERM: 0.3 s are over\n$"},
                                                    {SIGUSR1, 200, "^SIGUSR1: 0.2 s are over\n$"},
                                                    {SIGHUP, 300, "^SIGHUP: 0.3 s are over\n$"}};
  for (const auto& [signal, limit_ms, words] : rows)
    EXPECT_EXIT(
        {
          const Clock::time_point begin = Clock::now();
          const milliseconds limit(limit_ms);
          StopRequest stop({milliseconds(300), milliseconds(200)}, [&](const std::string& why) {
            std::fprintf(stderr, "%s\n", Clock::now() - begin >= limit ? why.c_str() : "early");
          });
          ::kill(::getpid(), signal);
          std::this_thread::sleep_for(seconds(20));
          ::_exit(2);
        },
        testing::ExitedWithCode(static_cast<int>(ExitCode::try_again)), words);
}

[[noreturn]] void stand_still() {
  for (;;) ::pause();
}

// Fault 36.
TEST(StopRequestDeathTest, WordsThatNobodyReadsHoldUpNoEnd) {
  const auto stuck = [](const std::string&) { stand_still(); };
  for (const int signal : {SIGTERM, SIGUSR1, SIGHUP, SIGINT})
    EXPECT_EXIT(
        {
          StopRequest stop(stuck);
          ::kill(::getpid(), signal);
          std::this_thread::sleep_for(seconds(20));
          ::_exit(2);
        },
        testing::KilledBySignal(signal), "");
  EXPECT_EXIT(
      {
        StopRequest stop({milliseconds(10), milliseconds(0)}, stuck);
        ::kill(::getpid(), SIGTERM);
        std::this_thread::sleep_for(seconds(20));
        ::_exit(2);
      },
      testing::ExitedWithCode(static_cast<int>(ExitCode::try_again)), "");
}

TEST(StopRequestDeathTest, WordsThatFailHoldUpNoEnd) {
  const auto failing = [](const std::string&) { throw HostError("a listener's"); };
  EXPECT_EXIT(
      {
        StopRequest stop(failing);
        ::kill(::getpid(), SIGTERM);
        std::this_thread::sleep_for(seconds(20));
        ::_exit(2);
      },
      testing::KilledBySignal(SIGTERM), "");
  EXPECT_EXIT(
      {
        StopRequest stop({milliseconds(10), milliseconds(0)}, failing);
        ::kill(::getpid(), SIGTERM);
        std::this_thread::sleep_for(seconds(20));
        ::_exit(2);
      },
      testing::ExitedWithCode(static_cast<int>(ExitCode::try_again)), "");
}

TEST(StopRequest, NothingIsTooLateOnceItIsSaved) {
  StopRequest stop({milliseconds(50), milliseconds(50)}, kNever);
  stop.saved();
  ASSERT_EQ(::kill(::getpid(), SIGTERM), 0);
  ASSERT_TRUE(comes(stop));
  std::this_thread::sleep_for(milliseconds(150));  // the watching thread has reported it by then
}

TEST(StopLimits, AreTheOptionsOrALittleLessThanTheLaunchers) {
  CheckpointOptions options;
  EXPECT_EQ(stop_limits(options, seconds(0)).after_sigterm, milliseconds(0));
  EXPECT_EQ(stop_limits(options, seconds(30)).after_sigterm, seconds(29));
  EXPECT_EQ(stop_limits(options, seconds(2)).after_sigterm, milliseconds(1800));
  EXPECT_EQ(stop_limits(options, seconds(30)).after_sigusr1, milliseconds(0));
  options.grace_seconds = 20;
  for (const int launcher : {0, 20, 30}) {
    EXPECT_EQ(stop_limits(options, seconds(launcher)).after_sigterm, seconds(20));
    EXPECT_EQ(stop_limits(options, seconds(launcher)).after_sigusr1, seconds(20));
  }
  try {
    (void)stop_limits(options, seconds(19));
    FAIL() << "killed before it would give up";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("mlaunch --grace 20"), std::string::npos);
  }
}

}  // namespace
}  // namespace strata::train
