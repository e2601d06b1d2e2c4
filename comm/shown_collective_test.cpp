#include "comm/shown_collective.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "comm/fail_together.h"
#include "comm/gather_texts.h"
#include "comm/single.h"
#include "comm/testing/test_watch.h"
#include "core/error.h"

namespace strata::comm {
namespace {

using Heard = std::vector<std::string>;

TEST(ShownCollective, TellsNumberAndNameAndTheEnd) {
  SingleCommunicator communicator;
  TestWatch watch;
  communicator.set_watch(&watch);
  EXPECT_EQ(gather_numbers(communicator, 7), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(watch.heard, (Heard{"1 gather texts of ranks", "end"}));
}

TEST(ShownCollective, TheOuterNameStaysAndNumbersGoOn) {
  SingleCommunicator communicator;
  TestWatch watch;
  communicator.set_watch(&watch);
  (void)fail_together(communicator, [] { throw DataError("no"); });
  const std::string name = "learn whether all ranks succeeded";
  ASSERT_FALSE(watch.heard.empty());
  EXPECT_EQ(watch.heard.front(), "1 " + name);
  EXPECT_EQ(watch.heard[watch.heard.size() - 2], "3 " + name);
  EXPECT_EQ(std::ranges::count(watch.heard, "end"), 1);
  EXPECT_EQ(watch.heard.back(), "end");
}

TEST(ShownCollective, AFailureStaysShown) {
  SingleCommunicator communicator;
  TestWatch watch;
  communicator.set_watch(&watch);
  communicator.abort("stop", ExitCode::internal);
  EXPECT_THROW((void)gather_numbers(communicator, 1), PeerError);
  EXPECT_EQ(watch.heard, (Heard{"1 gather texts of ranks"}));
}

TEST(ShownCollective, NobodyNeedsToWatch) {
  SingleCommunicator communicator;
  EXPECT_EQ(gather_texts(communicator, "a"), (Heard{"a"}));
}

}  // namespace
}  // namespace strata::comm
