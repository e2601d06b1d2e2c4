#include "launcher/output/unread_output.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

using std::chrono::seconds;

TEST(UnreadOutput, IsSpokenOfOnceAndOnlyIfItLasts) {
  UnreadOutput unread;
  UnreadOutput::TimePoint now{seconds(100)};
  EXPECT_FALSE(unread.is_news(now, true));
  EXPECT_FALSE(unread.is_news(now += seconds(4), true));
  EXPECT_FALSE(unread.is_news(now += seconds(1), false)) << "it is read again";
  EXPECT_FALSE(unread.is_news(now += seconds(9), true));
  EXPECT_TRUE(unread.is_news(now += seconds(5), true));
  EXPECT_FALSE(unread.is_news(now += seconds(99), true)) << "it was said";
}

}  // namespace
}  // namespace strata::launcher
