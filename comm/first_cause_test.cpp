#include "comm/first_cause.h"

#include <gtest/gtest.h>

namespace strata::comm {
namespace {

TEST(FirstCause, IsWhatTheLastNamedRankSaid) {
  EXPECT_EQ(first_cause("instruction 'a' failed: rank 1: instruction 'b' failed: disk full"),
            "rank 1: instruction 'b' failed: disk full");
  EXPECT_EQ(first_cause("rank 1: instruction 'a' failed: rank 0: instruction 'b' failed: rank 12: "
                        "instruction 'c' failed: token 7 is too large"),
            "rank 12: instruction 'c' failed: token 7 is too large");
  EXPECT_EQ(
      first_cause("instruction 'a' failed: rank 2 (process 77) has ended; rank 0 was waiting"),
      "rank 2 (process 77) has ended; rank 0 was waiting");
}

TEST(FirstCause, IsTheWholeMessageWhenNoRankHandedItOn) {
  for (const char* message :
       {"", "failed: ", "disk full", "rank 1: disk full", "instruction 'a' failed: disk full",
        "instruction 'a' failed: rank", "instruction 'a' failed: rank 12",
        "instruction 'a' failed: rank x: y", "instruction 'a' failed: ranks 1: differ"})
    EXPECT_EQ(first_cause(message), message);
}

TEST(FirstCause, IsAttributedOnce) {
  EXPECT_EQ(attributed(3, "disk full"), "rank 3: disk full");
  EXPECT_EQ(attributed(3, "rank 3: disk full"), "rank 3: disk full");
  EXPECT_EQ(attributed(3, "instruction 'a' failed: disk full"),
            "rank 3: instruction 'a' failed: disk full");
  EXPECT_EQ(attributed(3, "rank 3: instruction 'a' failed: rank 1: disk full"),
            "rank 1: disk full");
  EXPECT_EQ(attributed(0, "rank 2 (process 77) has ended"), "rank 2 (process 77) has ended");
}

TEST(FirstCause, IsTheLaunchersWhicheverRankHandsItOn) {
  const std::string said = told_by_launcher("host b is lost");
  EXPECT_EQ(said, "mlaunch: host b is lost");
  EXPECT_EQ(told_by_launcher("rank 3 was killed by signal 9"), "rank 3 was killed by signal 9");
  EXPECT_EQ(attributed(0, said), said);
  EXPECT_EQ(attributed(0, "rank 0: instruction 'a' failed: " + said), said);
  EXPECT_EQ(first_cause("instruction 'a' failed: " + said), said);
}

}  // namespace
}  // namespace strata::comm
