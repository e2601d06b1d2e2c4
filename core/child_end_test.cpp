#include "core/child_end.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"

namespace strata {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

TEST(ChildEnd, HasTheStatusOfAChildThatEnds) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(3);
  const auto status = wait_for_child(child, Clock::now() + seconds(180));
  ASSERT_TRUE(status && WIFEXITED(*status));
  EXPECT_EQ(WEXITSTATUS(*status), 3);
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), -1) << "it is reaped";
}

TEST(ChildEnd, IsNotWaitedForWithoutALimit) {
  const pid_t child = ::fork();
  if (child == 0)
    for (;;) ::pause();
  EXPECT_FALSE(wait_for_child(child, Clock::now() + milliseconds(20)));
  EXPECT_FALSE(wait_for_child(child, Clock::now() - seconds(1)));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  const auto status = wait_for_child(child, Clock::now() + seconds(180));
  ASSERT_TRUE(status && WIFSIGNALED(*status));
  EXPECT_EQ(WTERMSIG(*status), SIGKILL);
}

TEST(ChildEnd, OfNoChildIsAnError) {
  EXPECT_THROW((void)wait_for_child(0x3fffffff, Clock::now()), HostError);
}

}  // namespace
}  // namespace strata
