#include "launcher/control/reach.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

using std::chrono::seconds;

TEST(Reach, WaitsLongForTheFirstAnswerAndSaysSoOnce) {
  const Reach::TimePoint begin{};
  Reach reach(begin);
  EXPECT_EQ(reach.next_deadline(), begin + Reach::kQuiet);
  EXPECT_FALSE(reach.complaint(begin + seconds(2)));
  reach.lost(begin + seconds(2), "connection refused");
  const auto said = reach.complaint(begin + seconds(3));
  ASSERT_TRUE(said);
  EXPECT_NE(said->find("up to 300 s (connection refused)"), std::string::npos) << *said;
  EXPECT_FALSE(reach.complaint(begin + seconds(4)));
  EXPECT_EQ(reach.next_deadline(), begin + seconds(300));
  EXPECT_FALSE(reach.has_given_up(begin + seconds(299)));
  EXPECT_TRUE(reach.has_given_up(begin + seconds(300)));
}

TEST(Reach, WaitsLessForOneThatWasThere) {
  const Reach::TimePoint begin{};
  Reach reach(begin);
  reach.found();
  EXPECT_EQ(reach.next_deadline(), std::nullopt);
  EXPECT_FALSE(reach.has_given_up(begin + seconds(1000)));
  reach.lost(begin + seconds(1000), "broken");
  reach.lost(begin + seconds(1050), "broken");
  EXPECT_TRUE(reach.complaint(begin + seconds(1050)));
  EXPECT_FALSE(reach.has_given_up(begin + seconds(1059)));
  EXPECT_TRUE(reach.has_given_up(begin + seconds(1060)));
  reach.found();
  reach.lost(begin + seconds(2000), "broken");
  EXPECT_TRUE(reach.complaint(begin + seconds(2003))) << "each time anew";
}

}  // namespace
}  // namespace strata::launcher
