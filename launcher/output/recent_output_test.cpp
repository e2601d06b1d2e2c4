#include "launcher/output/recent_output.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

constexpr auto kOutput = OutputKind::standard_output, kError = OutputKind::standard_error;
constexpr std::size_t kMuch = std::size_t{1} << 30;

std::string texts(const RecentOutput::Piece& piece) {
  std::string text;
  for (const OutputLine& line : piece.lines) text += line.text + "|";
  return text;
}

TEST(RecentOutput, KeepsWholeLinesOfEachRankInTheOrderOfTheirEnds) {
  RecentOutput output(kMuch);
  output.say("mlaunch: begins");
  output.begin_attempt(2);
  output.feed(1, kOutput, "a\nb");
  output.feed(0, kError, "c\n");
  output.feed(1, kOutput, "b\n");
  const auto all = output.read({}, kMuch);
  EXPECT_EQ(all.lines, (std::vector<OutputLine>{{-1, -1, kError, "mlaunch: begins"},
                                                {1, 2, kOutput, "a"},
                                                {0, 2, kError, "c"},
                                                {1, 2, kOutput, "bb"}}));
  EXPECT_EQ(all.next, 4U);
  EXPECT_EQ(texts(output.read({.rank = 1}, kMuch)), "a|bb|");
  EXPECT_EQ(texts(output.read({.rank = 7}, kMuch)), "");
}

TEST(RecentOutput, AReaderGoesOnWhereItWas) {
  for (const auto rank : {std::optional<int>(), std::optional(0)}) {
    RecentOutput output(kMuch);
    for (int i = 0; i < 10; ++i) output.feed(i % 2, kOutput, std::to_string(i) + "\n");
    std::string read;
    AskLogs place{.rank = rank};
    for (bool more = true; more;) {
      const auto piece = output.read(place, 1);
      EXPECT_EQ(piece.lines.size(), 1U);
      EXPECT_EQ(piece.dropped, 0U);
      read += texts(piece);
      place.number = piece.next;
      more = piece.more();
    }
    EXPECT_EQ(read, rank ? "0|2|4|6|8|" : "0|1|2|3|4|5|6|7|8|9|");
    output.feed(0, kOutput, "new\n");
    EXPECT_EQ(texts(output.read(place, kMuch)), "new|");
    EXPECT_EQ(texts(output.read({.rank = rank, .number = 1000}, kMuch)), "");
  }
}

TEST(RecentOutput, AReaderMayBeginBeforeTheEnd) {
  RecentOutput output(kMuch);
  for (int i = 0; i < 10; ++i) output.feed(i % 2, kOutput, std::to_string(i) + "\n");
  EXPECT_EQ(texts(output.read({.number = 3, .from_end = true}, kMuch)), "7|8|9|");
  EXPECT_EQ(texts(output.read({.rank = 0, .number = 3, .from_end = true}, kMuch)), "4|6|8|");
  EXPECT_EQ(texts(output.read({.rank = 0, .number = 0, .from_end = true}, kMuch)), "");
  EXPECT_EQ(texts(output.read({.rank = 1, .number = 99, .from_end = true}, kMuch)), "1|3|5|7|9|");
}

TEST(RecentOutput, OldLinesGoAndAreCounted) {
  RecentOutput output(4 * (RecentOutput::kLineOverhead + 1));
  output.feed(1, kOutput, "x\n");
  for (int i = 0; i < 10; ++i) output.feed(0, kOutput, std::to_string(i) + "\n");
  const auto own = output.read({.rank = 0}, kMuch);
  EXPECT_EQ(texts(own), "6|7|8|9|");
  EXPECT_EQ(own.dropped, 6U);
  EXPECT_EQ(output.read({.rank = 0, .number = 7}, kMuch).dropped, 0U);
  const auto all = output.read({}, kMuch);
  EXPECT_EQ(texts(all), "x|6|7|8|9|") << "a rank that writes much takes nothing from another";
  EXPECT_EQ(all.dropped, 6U);
  const auto slow = output.read({.number = 3}, kMuch);
  EXPECT_EQ(texts(slow), "6|7|8|9|");
  EXPECT_EQ(slow.dropped, 4U);
}

TEST(RecentOutput, TheLastLinesOfEachRankAreKeptInOrder) {
  RecentOutput output(kMuch);
  output.feed(1, kOutput, "early\n");
  for (int i = 0; i < 1000; ++i) output.feed(0, kOutput, std::to_string(1000 + i) + "\n");
  output.feed(1, kOutput, "late\n");
  const auto texts_of = [&](std::size_t most_bytes) {
    return texts({.lines = output.last_of_each(most_bytes)});
  };
  EXPECT_EQ(texts_of(2 * 2 * (RecentOutput::kLineOverhead + 5)), "early|1998|1999|late|");
  EXPECT_EQ(texts_of(2 * (RecentOutput::kLineOverhead + 5)), "1999|late|");
  EXPECT_EQ(texts_of(0), "");
}

TEST(RecentOutput, ALineIsWhatATerminalShowsOfIt) {
  RecentOutput output(kMuch);
  output.feed(0, kOutput, "10 %\r20 %\r30 %\n");
  for (int i = 0; i < 100'000; ++i) output.feed(0, kError, "a progress line\r");
  output.feed(0, kError, "its end\n");
  EXPECT_EQ(texts(output.read({.rank = 0}, kMuch)), "30 %|its end|");
}

TEST(RecentOutput, LongLinesAreCutAndUnfinishedOnesEnd) {
  RecentOutput output(kMuch);
  const std::string half(RecentOutput::kMaxLineBytes, 'x');
  output.feed(0, kOutput, half);
  EXPECT_EQ(output.read({.rank = 0}, kMuch).lines.size(), 0U);
  output.feed(0, kOutput, "y");
  output.feed(0, kOutput, "rest");
  output.finish_line(0, kOutput);
  output.finish_line(0, kOutput);
  EXPECT_EQ(texts(output.read({.rank = 0}, kMuch)), half + "y|rest|");
}

TEST(RecentOutput, WordsOfMlaunchMayHaveSeveralLines) {
  RecentOutput output(kMuch);
  output.say("one\n\nthree\n");
  EXPECT_EQ(texts(output.read({}, kMuch)), "one||three|");
}

}  // namespace
}  // namespace strata::launcher
