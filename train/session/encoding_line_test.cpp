#include "train/session/encoding_line.h"

#include <gtest/gtest.h>

namespace strata::train {
namespace {

TEST(EncodingLine, SaysHowMuchOfWhichTextIsDoneAndHowLongItTakes) {
  EXPECT_EQ(describe({"a/corpus.txt", 10'000'000, 40'000'000, 2'500'000}, 2e6),
            "a/corpus.txt: 25 % of 40.0 MB is 2.5 million tokens, 2.0 MB/s, 15 s left");
}

TEST(EncodingLine, AnEmptyTextIsAnAmountLikeOthers) {
  EXPECT_TRUE(describe({"empty.txt", 0, 0, 0}, 0)
                  .starts_with("empty.txt: 0 % of 0.0 MB is 0.0 million tokens, "));
}

TEST(EncodingLine, NothingIsPrintedBeforeALongTextHasBeenSeenTwice) {
  testing::internal::CaptureStdout();
  Console console(ConsoleStreams{.output_is_terminal = true});
  EncodingLine line(console);
  line.show({"a", 1, 4, 1});
  line.finish();
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  testing::internal::CaptureStdout();
  line.show({"a", 2, 4, 2});
  line.show({"b", 1, 4, 1});
  line.finish();
  const std::string shown = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(shown.starts_with("\r\033[Ka: 50 % of")) << shown;
  EXPECT_TRUE(shown.ends_with("\n")) << shown;
}

}  // namespace
}  // namespace strata::train
