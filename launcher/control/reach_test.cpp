#include "launcher/control/reach.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

using std::chrono::seconds;

TEST(Reach, WaitsLongForTheFirstAnswerAndSaysSoAgain) {
  const Reach::TimePoint begin{};
  Reach reach(begin, "h:1", Reach::kJoin);
  EXPECT_EQ(reach.next_deadline(), begin + Reach::kQuiet);
  EXPECT_FALSE(reach.complaint(begin + seconds(2)));
  reach.lost(begin + seconds(2), "connection refused");
  EXPECT_EQ(reach.complaint(begin + seconds(3)),
            "host 0 does not answer at h:1 (connection refused): it has not started yet, or the "
            "run is over; this host tries again for up to 300 s");
  EXPECT_FALSE(reach.complaint(begin + seconds(4)));
  EXPECT_EQ(reach.next_deadline(), begin + seconds(60));
  EXPECT_EQ(reach.complaint(begin + seconds(61)),
            "host 0 has not answered at h:1 for 61 s (connection refused): it has not started yet, "
            "or the run is over; this host tries again for 239 s more");
  EXPECT_FALSE(reach.complaint(begin + seconds(62)));
  EXPECT_EQ(reach.next_deadline(), begin + seconds(120));
  EXPECT_TRUE(reach.complaint(begin + seconds(250))) << "this host slept";
  EXPECT_EQ(reach.next_deadline(), begin + seconds(300));
  EXPECT_FALSE(reach.has_given_up(begin + seconds(299)));
  EXPECT_TRUE(reach.has_given_up(begin + seconds(300)));
  EXPECT_FALSE(reach.complaint(begin + seconds(300))) << "the farewell says it";
  EXPECT_EQ(reach.farewell(),
            "host 0 has not answered at h:1 for 300 s (connection refused): it has not started, or "
            "the run is over; this host ends");
}

// A scheduler that starts a host again which ends with 75 would do so for ever once the run is
// over.
TEST(Reach, AsksForAnotherStartOnlyIfARunWasThere) {
  const Reach::TimePoint begin{};
  Reach reach(begin, "h:1", seconds(20));
  EXPECT_TRUE(reach.complaint(begin + seconds(3)));
  EXPECT_EQ(reach.next_deadline(), begin + seconds(20));
  EXPECT_TRUE(reach.has_given_up(begin + seconds(20)));
  EXPECT_EQ(reach.exit_code(), ExitCode::host);
  EXPECT_FALSE(reach.found()) << "that it has joined says it";
  reach.lost(begin + seconds(30), "broken");
  EXPECT_FALSE(reach.has_given_up(begin + seconds(89)));
  EXPECT_TRUE(reach.has_given_up(begin + seconds(90)));
  EXPECT_EQ(reach.exit_code(), ExitCode::try_again);
}

TEST(Reach, WaitsLessForOneThatWasThere) {
  const Reach::TimePoint begin{};
  Reach reach(begin, "h:1", Reach::kJoin);
  EXPECT_FALSE(reach.found());
  EXPECT_EQ(reach.next_deadline(), std::nullopt);
  EXPECT_FALSE(reach.has_given_up(begin + seconds(1000)));
  reach.lost(begin + seconds(1000), "broken");
  reach.lost(begin + seconds(1050), "broken");
  EXPECT_EQ(reach.complaint(begin + seconds(1050)),
            "host 0 does not answer any more at h:1 (broken): this host waits for it up to 60 s");
  EXPECT_FALSE(reach.has_given_up(begin + seconds(1059)));
  EXPECT_TRUE(reach.has_given_up(begin + seconds(1060)));
  EXPECT_EQ(reach.found(), "host 0 answers again at h:1");
  reach.lost(begin + seconds(1999), "broken");
  EXPECT_FALSE(reach.found()) << "nothing was said of a moment";
  reach.lost(begin + seconds(2000), "broken");
  EXPECT_TRUE(reach.complaint(begin + seconds(2003))) << "each time anew";
}

// Fault 13.
TEST(Reach, WaitsForTheRightCoordinatorWhereAnotherOneAnswers) {
  const Reach::TimePoint begin{};
  Reach reach(begin, "h:1", Reach::kJoin);
  EXPECT_FALSE(reach.found());
  reach.lost(begin + seconds(10), "broken");
  EXPECT_EQ(reach.found_another(begin + seconds(11), "it differs"),
            "what answers at h:1 is not host 0 of this run: it differs; this host waits for the "
            "right one up to 60 s");
  EXPECT_FALSE(reach.found_another(begin + seconds(12), "it differs")) << "once";
  EXPECT_TRUE(reach.found_another(begin + seconds(12), "it differs more"));
  EXPECT_FALSE(reach.complaint(begin + seconds(14))) << "it was said";
  EXPECT_FALSE(reach.has_given_up(begin + seconds(69)));
  EXPECT_TRUE(reach.has_given_up(begin + seconds(70)));
  EXPECT_EQ(reach.farewell(),
            "host 0 has not answered again at h:1 for 60 s (what answers there is not host 0 of "
            "this run: it differs more): this host ends");
  EXPECT_EQ(reach.found(), "host 0 answers again at h:1");
}

}  // namespace
}  // namespace strata::launcher
