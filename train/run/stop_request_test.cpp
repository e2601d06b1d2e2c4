// Signals sent to the own process, as a launcher or a job scheduler sends them.
#include "train/run/stop_request.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

namespace strata::train {
namespace {

TEST(StopRequest, SignalsAreSeenOnceAskedAndDoNotKill) {
  for (int signal : {SIGTERM, SIGUSR1}) {
    StopRequest stop;
    EXPECT_FALSE(stop.requested());
    ASSERT_EQ(::kill(::getpid(), signal), 0);
    EXPECT_TRUE(stop.requested());
    EXPECT_TRUE(stop.requested());
  }
}

TEST(StopRequest, ThreadsStartedAfterwardsLeaveTheSignalAlone) {
  StopRequest stop;
  std::thread([] { ASSERT_EQ(::raise(SIGTERM), 0); }).join();  // to that very thread
  std::thread([] { ASSERT_EQ(::kill(::getpid(), SIGTERM), 0); }).join();
  EXPECT_TRUE(stop.requested());
}

TEST(StopRequestDeathTest, TheSecondSignalKills) {
  EXPECT_EXIT(
      {
        StopRequest stop;
        ::kill(::getpid(), SIGTERM);
        if (!stop.requested()) ::_exit(1);
        ::kill(::getpid(), SIGTERM);
        ::_exit(2);
      },
      testing::KilledBySignal(SIGTERM), "");
}

}  // namespace
}  // namespace strata::train
