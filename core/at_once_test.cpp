#include "core/at_once.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <barrier>
#include <memory>
#include <stdexcept>
#include <string>

namespace strata {
namespace {

TEST(AtOnceTest, AnswersComeInTheOrderOfTheirNumbers) {
  const auto squares = all_at_once(100, [](std::size_t i) { return i * i; });
  ASSERT_EQ(squares.size(), 100u);
  for (std::size_t i = 0; i < squares.size(); ++i) EXPECT_EQ(squares[i], i * i);
  EXPECT_THAT(all_at_once(0, [](std::size_t i) { return i; }), testing::IsEmpty());
}

TEST(AtOnceTest, WhatIsMadeNeedOnlyBeMovable) {
  const auto made = all_at_once(3, [](std::size_t i) { return std::make_unique<std::size_t>(i); });
  EXPECT_EQ(*made[2], 2u);
}

TEST(AtOnceTest, CallsRunAtTheSameTimeWhereThereAreCores) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "the process has one core";
  std::barrier<> both(2);  // one call alone would wait here for ever
  const auto made = all_at_once(2, [&](std::size_t i) {
    both.arrive_and_wait();
    return i;
  });
  EXPECT_THAT(made, testing::ElementsAre(0, 1));
}

TEST(AtOnceTest, TheFirstErrorByNumberIsThrownAfterAllCalls) {
  std::atomic<int> calls = 0;
  const auto make = [&](std::size_t i) {
    ++calls;
    if (i == 2 || i == 5) throw std::runtime_error(std::to_string(i));
    return i;
  };
  try {
    (void)all_at_once(8, make);
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "2");
  }
  EXPECT_EQ(calls, 8);
}

TEST(AtOnceTest, CallsMayCallItThemselves) {
  const auto sums = all_at_once(4, [](std::size_t i) {
    std::size_t sum = 0;
    for (const std::size_t j : all_at_once(4, [&](std::size_t k) { return i + k; })) sum += j;
    return sum;
  });
  EXPECT_THAT(sums, testing::ElementsAre(6, 10, 14, 18));
}

}  // namespace
}  // namespace strata
