#include "plan/alternatives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/testing/small_training.h"

namespace strata::plan {
namespace {

using testing::Each;
using testing::Field;
using testing::IsEmpty;

std::vector<Choices> others(const Choices& asked, const Freedom& free, int ranks = 1,
                            bool own_device = true) {
  std::vector<Choices> all = alternatives(asked, free, small_frame(ranks), own_device);
  EXPECT_EQ(all.at(0), asked);
  all.erase(all.begin());
  return all;
}

constexpr Freedom kNothing{false, false, false, false, false, false, false, false, Home::disk};

TEST(Alternatives, NothingIsOpenIfAllWasGiven) {
  EXPECT_THAT(others({.micro_batch = 4, .micro_steps = 2}, kNothing, 4), IsEmpty());
}

TEST(Alternatives, SamplesOfAStepStay) {
  Freedom free = kNothing;
  free.micro_batch = true;
  const std::vector<Choices> all = others({.micro_batch = 4, .micro_steps = 3}, free);
  std::vector<std::int64_t> sizes;
  for (const Choices& choices : all) {
    EXPECT_EQ(choices.micro_batch * choices.micro_steps, 12);
    sizes.push_back(choices.micro_batch);
  }
  EXPECT_THAT(sizes, testing::ElementsAre(12, 6, 3, 2, 1));  // 4 is what was asked for
}

TEST(Alternatives, StagesAreForSeveralRanks) {
  Freedom free = kNothing;
  free.stage = true;
  EXPECT_THAT(others({}, free, 1), IsEmpty());
  EXPECT_EQ(others({}, free, 2).size(), 3U);
}

TEST(Alternatives, HostMemoryGainsNothingForACpu) {
  Freedom free = kNothing;
  free.optimizer = free.parameters = free.activations = true;
  for (const Choices& choices : others({}, free, 1, false)) {
    EXPECT_NE(choices.optimizer, Home::host);
    EXPECT_NE(choices.parameters, Home::host);
    EXPECT_NE(choices.activations, Home::host);
  }
}

TEST(Alternatives, NothingGoesFartherThanAllowed) {
  Freedom free = kNothing;
  free.optimizer = free.parameters = free.activations = true;
  free.farthest = Home::host;
  const std::vector<Choices> all = others({}, free);
  EXPECT_FALSE(all.empty());
  for (const Choices& choices : all)
    EXPECT_LE(std::max({choices.optimizer, choices.parameters, choices.activations}), Home::host);
  free.farthest = Home::device;
  EXPECT_THAT(others({}, free), IsEmpty());
}

TEST(Alternatives, WhatWasAskedMayBeFartherThanAllowed) {
  Freedom free = kNothing;
  free.activations = true;
  free.farthest = Home::device;
  EXPECT_THAT(others({.optimizer = Home::disk}, free),
              testing::AllOf(Each(Field(&Choices::optimizer, Home::disk)),
                             Each(Field(&Choices::activations, Home::device))));
}

TEST(Alternatives, HomesThatNoOthersWouldHaveGoWithEachMicroBatch) {
  Freedom free = kNothing;
  free.micro_batch = true;
  const Choices asked{.micro_batch = 4, .parameters = Home::host};  // state stays on the device
  EXPECT_THAT(others(asked, free), testing::ElementsAre(Field(&Choices::micro_batch, 2),
                                                        Field(&Choices::micro_batch, 1)));
  free.optimizer = true;
  EXPECT_THAT(others(asked, free, 1, false), testing::Contains(Field(&Choices::micro_batch, 1)))
      << "on a CPU no state goes to host memory";
}

TEST(Alternatives, LayersComeFirstOnlyAmongSeveralMicroSteps) {
  Freedom free = kNothing;
  free.order = true;
  EXPECT_THAT(others({.micro_batch = 4}, free), IsEmpty());
  EXPECT_THAT(others({.micro_batch = 2, .micro_steps = 2}, free),
              testing::ElementsAre(Field(&Choices::layer_major, true)));
}

TEST(Alternatives, SumsLeaveWithOptimizerStateOfSeveralMicroSteps) {
  Freedom free = kNothing;
  free.sums = true;
  const Choices offloaded{.micro_batch = 2, .micro_steps = 2, .optimizer = Home::host};
  EXPECT_THAT(others(offloaded, free), testing::ElementsAre(Field(&Choices::sums_away, true)));
  EXPECT_THAT(others(offloaded, free, 1, false), IsEmpty()) << "a CPU's memory is the host's";
  EXPECT_THAT(others({.micro_batch = 2, .micro_steps = 2}, free), IsEmpty());
  EXPECT_THAT(others({.micro_batch = 4, .optimizer = Home::host}, free), IsEmpty());
  Choices by_layer = offloaded;
  by_layer.layer_major = true;
  EXPECT_THAT(others(by_layer, free), IsEmpty());
  Choices asked = offloaded;
  asked.sums_away = true;
  EXPECT_THAT(others(asked, kNothing), IsEmpty());
}

}  // namespace
}  // namespace strata::plan
