#include "launcher/views/output_of_hosts.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Names = std::vector<std::string>;

class OutputOfHostsTest : public ::testing::Test {
 protected:
  /// Hosts and line numbers that are fetched, as in "1/7 2/0".
  std::string fetches(std::optional<int> rank = {}) {
    std::string text;
    for (const auto& fetch : hosts_.want(now_, rank, all_).fetches)
      text += (text.empty() ? "" : " ") + fetch.host + "/" + std::to_string(fetch.number);
    return text;
  }
  Names waiting_for(std::optional<int> rank = {}) {
    return hosts_.want(now_, rank, all_).waiting_for;
  }
  /// The answer of a host that has a line, and dropped some, since line `from`.
  void answer(const std::string& host, std::uint64_t from, bool more, std::uint64_t dropped = 0) {
    RecentOutput::Piece piece{.next = from + dropped + 1, .dropped = dropped};
    piece.end = piece.next + (more ? 1 : 0);
    piece.lines.push_back({.rank = host == "1" ? 2 : 4, .text = host});
    hosts_.take(now_, host, "agent", piece);
  }
  [[nodiscard]] std::size_t lines() const { return output_.read({}, 1 << 20).lines.size(); }

  OutputOfHosts::TimePoint now_{seconds(100)};
  RecentOutput output_{1 << 20};
  std::vector<OutputOfHosts::Host> all_{{"1", "agent", "1 (b)", 2, 2}, {"2", "agent", "2", 4, 1}};
  OutputOfHosts hosts_{output_};
};

TEST_F(OutputOfHostsTest, FetchesPieceAfterPieceUntilAllIsThere) {
  EXPECT_EQ(fetches(), "1/0 2/0");
  EXPECT_EQ(fetches(), "") << "they have been asked";
  answer("1", 0, true);
  EXPECT_EQ(fetches(), "1/1");
  EXPECT_EQ(waiting_for(), (Names{"1 (b)", "2"}));
  answer("1", 1, false);
  answer("2", 0, false);
  EXPECT_EQ(waiting_for(), Names());
  EXPECT_EQ(fetches(), "");
  now_ += milliseconds(250);
  EXPECT_EQ(fetches(), "1/2 2/1");
  EXPECT_EQ(lines(), 3U);
}

TEST_F(OutputOfHostsTest, AsksOnlyTheHostOfARank) {
  EXPECT_EQ(fetches(0), "");
  EXPECT_EQ(waiting_for(0), Names());
  EXPECT_EQ(fetches(3), "1/0");
  EXPECT_EQ(fetches(4), "2/0");
}

TEST_F(OutputOfHostsTest, AsksAgainWhereAnAnswerWasLost) {
  EXPECT_EQ(fetches(2), "1/0");
  now_ += milliseconds(2999);
  EXPECT_EQ(fetches(2), "");
  now_ += milliseconds(1);
  EXPECT_EQ(fetches(2), "1/0");
  answer("1", 0, false);
  answer("1", 0, false);
  EXPECT_EQ(lines(), 1U) << "the late answer is one too many";
}

TEST_F(OutputOfHostsTest, LastLinesMayComeUnasked) {
  EXPECT_EQ(fetches(2), "1/0");
  answer("1", 0, false);
  answer("1", 1, false);
  EXPECT_EQ(lines(), 2U);
  answer("2", 0, false);
  EXPECT_EQ(lines(), 2U) << "nobody looks at its ranks";
}

TEST_F(OutputOfHostsTest, AnotherAgentBeginsAnew) {
  EXPECT_EQ(fetches(2), "1/0");
  answer("1", 0, false);
  all_[0].agent = "another";
  EXPECT_EQ(fetches(2), "1/0");
  answer("1", 0, false);
  EXPECT_EQ(lines(), 1U) << "the agent before is not heard any more";
}

TEST_F(OutputOfHostsTest, OldNewsIsWaitedFor) {
  EXPECT_EQ(fetches(2), "1/0");
  answer("1", 0, false);
  now_ += seconds(1);
  EXPECT_EQ(waiting_for(2), (Names{"1 (b)"}));
}

TEST_F(OutputOfHostsTest, AHostThatPrintsWithoutEndIsNotWaitedForWithoutEnd) {
  EXPECT_EQ(fetches(2), "1/0");
  answer("1", 0, true);  // there are two lines
  EXPECT_EQ(waiting_for(2), (Names{"1 (b)"}));
  EXPECT_EQ(fetches(2), "");
  answer("1", 1, true);  // and now there is a third one
  EXPECT_EQ(waiting_for(2), Names());
  now_ += milliseconds(50);
  EXPECT_EQ(fetches(2), "");
  answer("1", 2, true);
  EXPECT_EQ(fetches(2), "1/3");
}

TEST_F(OutputOfHostsTest, WhatGoesWhileSomebodyLooksIsCounted) {
  EXPECT_EQ(fetches(2), "1/0");
  answer("1", 0, true, 4);
  EXPECT_EQ(lines(), 1U) << "nobody misses what was gone before";
  EXPECT_EQ(fetches(2), "1/5");
  answer("1", 5, false, 7);
  EXPECT_EQ(output_.read({.rank = 2, .number = 1}, 1 << 20).lines.at(0).text,
            "mlaunch: 7 lines are gone: its host prints more than can be sent");
}

}  // namespace
}  // namespace strata::launcher
