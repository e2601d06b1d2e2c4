#include "core/shared_values.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

using std::chrono::milliseconds;
using Kind = ValueAnswer::Kind;

class SharedValuesTest : public testing::Test {
 protected:
  /// Returns what is answered, as "host id kind value" each.
  static std::string said(const std::vector<SharedValues::Answered>& answers) {
    std::string text;
    for (const auto& [host, answer] : answers)
      text += host + std::to_string(answer.id) + " " +
              std::to_string(static_cast<int>(answer.kind)) + " " + answer.value + ";";
    return text;
  }
  std::string put(const std::string& host, std::uint64_t id, const std::string& key,
                  const std::string& value) {
    return said(values_.ask(now_, host, {id, true, key, value, 0}));
  }
  std::string get(const std::string& host, std::uint64_t id, const std::string& key) {
    return said(values_.ask(now_, host, {id, false, key, "", 100}));
  }

  SharedValues::TimePoint now_{};
  SharedValues values_;
};

TEST_F(SharedValuesTest, AValueReachesThoseWhoAskBeforeAndAfter) {
  EXPECT_EQ(get("a", 1, "key"), "");
  EXPECT_EQ(get("b", 1, "key"), "");
  EXPECT_EQ(get("b", 2, "other"), "");
  EXPECT_EQ(put("c", 7, "key", "value"), "a1 0 value;b1 0 value;c7 0 ;");
  EXPECT_EQ(get("a", 2, "key"), "a2 0 value;");
  EXPECT_EQ(put("c", 8, "key", "new"), "c8 0 ;");
  EXPECT_EQ(get("a", 3, "key"), "a3 0 new;");
}

TEST_F(SharedValuesTest, WhoAsksAgainIsAnsweredOnce) {
  EXPECT_EQ(get("a", 1, "key"), "");
  EXPECT_EQ(get("a", 1, "key"), "");
  EXPECT_EQ(put("b", 1, "key", "value"), "a1 0 value;b1 0 ;");
  EXPECT_EQ(put("b", 1, "key", "value"), "b1 0 ;") << "its answer was lost";
}

TEST_F(SharedValuesTest, WaitingEndsInTime) {
  EXPECT_EQ(values_.next_deadline(), std::nullopt);
  EXPECT_EQ(get("a", 1, "key"), "");
  EXPECT_EQ(values_.next_deadline(), now_ + milliseconds(100));
  EXPECT_EQ(said(values_.expire(now_ + milliseconds(99))), "");
  EXPECT_EQ(said(values_.expire(now_ + milliseconds(100))), "a1 1 ;");
  EXPECT_EQ(values_.next_deadline(), std::nullopt);
}

// Fault 31.
TEST_F(SharedValuesTest, AFailureEndsAllWaitingUntilTheNextAttempt) {
  EXPECT_EQ(put("a", 1, "known", "x"), "a1 0 ;");
  EXPECT_EQ(get("a", 2, "key"), "");
  EXPECT_EQ(said(values_.fail("rank 1 fell")), "a2 3 rank 1 fell;");
  EXPECT_EQ(said(values_.fail("later")), "");
  EXPECT_EQ(get("b", 1, "key"), "b1 3 rank 1 fell;");
  EXPECT_EQ(get("b", 2, "known"), "b2 0 x;");
  values_.begin();
  EXPECT_EQ(get("b", 3, "known"), "") << "keys of an older attempt are gone";
}

TEST_F(SharedValuesTest, ItHasALimit) {
  EXPECT_EQ(put("a", 1, "k", std::string(SharedValues::kMostBytes, 'x')),
            "a1 2 the rendezvous is full (64 MiB);");
  EXPECT_EQ(put("a", 2, "k", "v"), "a2 0 ;");
}

}  // namespace
}  // namespace strata
