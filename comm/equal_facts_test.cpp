#include "comm/equal_facts.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

#include "comm/factory.h"
#include "core/error.h"

namespace strata::comm {
namespace {

using Facts = std::vector<Fact>;

/// Compares facts on as many ranks as there are lists; returns what each threw, "" for nothing.
std::vector<std::string> compared(const std::vector<Facts>& facts) {
  auto communicators = make_thread_communicators(static_cast<int>(facts.size()));
  std::vector<std::string> thrown(facts.size());
  std::vector<std::thread> ranks;
  for (std::size_t r = 0; r < facts.size(); ++r)
    ranks.emplace_back([&, r] {
      try {
        require_equal_facts(*communicators[r], "host" + std::to_string(r), facts[r]);
      } catch (const ConfigError& error) {
        thrown[r] = error.what();
      }
      communicators[r]->close();
    });
  for (std::thread& rank : ranks) rank.join();
  return thrown;
}

TEST(EqualFacts, EqualOnesPass) {
  const Facts facts{{"seed", "1"}, {"model", ""}};
  EXPECT_EQ(compared({facts, facts, facts}), std::vector<std::string>(3));
  EXPECT_EQ(compared({facts}), std::vector<std::string>(1));
  EXPECT_EQ(compared({{}, {}}), std::vector<std::string>(2));
}

// Fault 35.
TEST(EqualFacts, EveryRankSaysWhatDiffersWhere) {
  const Facts facts{{"seed", "1"}, {"rate", "0.1"}, {"model", "a"}};
  const Facts others{{"seed", "2"}, {"rate", "0.1"}, {"data", "b"}};
  const std::string expected =
      "the ranks do not mean the same run; give all of them the same settings, environment and "
      "files:\nseed: 1 on rank 0 (host0), 2 on rank 2 (host2)"
      "\nmodel: a on rank 0 (host0), nothing on rank 2 (host2)"
      "\ndata: nothing on rank 0 (host0), b on rank 2 (host2)";
  EXPECT_EQ(compared({facts, facts, others, others}), std::vector<std::string>(4, expected));
}

TEST(EqualFacts, PathsMayDifferAndAreNamedWhereFilesDo) {
  EXPECT_EQ(compared({{{"data", "1 token", "/a/x"}}, {{"data", "1 token", "/b/y"}}}),
            std::vector<std::string>(2));
  const std::string text =
      compared({{{"data", "1 token", "/a/x"}}, {{"data", "2 tokens", "/b/y"}}})[1];
  EXPECT_TRUE(text.ends_with(
      "\ndata: 1 token of /a/x on rank 0 (host0), 2 tokens of /b/y on rank 1 (host1)"))
      << text;
}

TEST(EqualFacts, ARankWithoutFactsAgreesWithAll) {
  const Facts facts{{"seed", "1"}};
  EXPECT_EQ(compared({facts, {}, facts}), std::vector<std::string>(3));
  EXPECT_EQ(compared({{}, facts, facts}), std::vector<std::string>(3));
  EXPECT_NE(compared({{}, facts, {{"seed", "3"}}})[1].find("3 on rank 2"), std::string::npos);
}

TEST(EqualFacts, LongValuesAreCut) {
  const auto with = [](char last) { return Facts{{"text", std::string(5000, 'x') + last}}; };
  const std::string text = compared({with('a'), with('b')})[0];
  EXPECT_NE(text.find("xxx... on rank 0"), std::string::npos);
  EXPECT_LT(text.size(), 1000U);
}

}  // namespace
}  // namespace strata::comm
