#include "train/data/sample_order.h"

#include <gtest/gtest.h>

#include <set>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

SampleOrder make(std::int64_t tokens, std::int64_t sequence, bool shuffle, std::uint64_t seed = 1) {
  return SampleOrder(tokens, "f.txt", {.sequence = sequence, .shuffle = shuffle, .seed = seed});
}

TEST(SampleOrder, AShuffledEpochVisitsEveryWindowOnce) {
  for (const std::int64_t tokens : {9, 10, 100, 1001, 1008, 1009}) {
    const SampleOrder order = make(tokens, 8, true);
    EXPECT_EQ(order.windows(), (tokens - 1) / 8);
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      std::set<std::int64_t> starts;
      for (std::int64_t i = 0; i < order.windows(); ++i)
        starts.insert(order.start_of(epoch * order.windows() + i));
      EXPECT_EQ(std::ssize(starts), order.windows());
      for (const std::int64_t start : starts) {
        EXPECT_EQ(start % 8, 0);
        EXPECT_LE(start + 8 + 1, tokens);
      }
    }
  }
}

TEST(SampleOrder, EpochsAndSeedsHaveOrdersOfTheirOwn) {
  const SampleOrder order = make(100000, 8, true, 1);
  const SampleOrder other = make(100000, 8, true, 2);
  int same_epoch = 0;
  int same_seed = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    same_epoch += order.start_of(i) == order.start_of(i + order.windows()) ? 1 : 0;
    same_seed += order.start_of(i) == other.start_of(i) ? 1 : 0;
  }
  EXPECT_LT(same_epoch, 5);
  EXPECT_LT(same_seed, 5);
}

/// Checks the rule of the peers' train.py: start = sample * sequence % (tokens - sequence - 1).
TEST(SampleOrder, UnshuffledSamplesFollowThePeersRule) {
  const SampleOrder order = make(1115394, 256, false);
  EXPECT_EQ(order.start_of(0), 0);
  EXPECT_EQ(order.start_of(5), 1280);
  EXPECT_EQ(order.start_of(4355), 1114880);
  EXPECT_EQ(order.start_of(4356), 1115136 % 1115137);
  EXPECT_EQ(order.start_of(4357), 255);
  EXPECT_EQ(order.windows(), 4357);
}

TEST(SampleOrder, UnshuffledWindowsDoNotOverlapWithinAnEpoch) {
  for (std::int64_t tokens = 10; tokens < 60; ++tokens) {
    const SampleOrder order = make(tokens, 8, false);
    for (std::int64_t i = 0; i < order.windows(); ++i) {
      EXPECT_EQ(order.start_of(i), i * 8);
      EXPECT_LE(order.start_of(i) + 9, tokens);
    }
  }
}

TEST(SampleOrder, TooLittleTextIsRefusedWithSizes) {
  EXPECT_EQ(message_of<DataError>([] { make(128, 128, true); }),
            "f.txt: too little text: 128 tokens, expected at least 129 for one sample of sequence "
            "length 128; "
            "give more data or a shorter --sequence-length");
  EXPECT_NO_THROW(make(129, 128, true));
  EXPECT_NE(message_of<DataError>([] { make(129, 128, false); }).find("at least 130"),
            std::string::npos);
  EXPECT_EQ(make(130, 128, false).start_of(12345), 0);
}

}  // namespace
}  // namespace strata::train
