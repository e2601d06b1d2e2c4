#include "plan/held_part.h"

#include <gtest/gtest.h>

namespace strata::plan {
namespace {

Choices with_homes(Home optimizer, Home parameters) {
  Choices choices;
  choices.optimizer = optimizer;
  choices.parameters = parameters;
  return choices;
}

/// Returns the share for `choices` where at most `most` of the optimizer's state is held.
double held(const Choices& choices, double most) {
  return with_held_part(choices, [&](const Choices& some) { return some.optimizer_part <= most; })
      .optimizer_part;
}

TEST(HeldPart, IsTheLargestSixteenthThatIsHeld) {
  const Choices away = with_homes(Home::host, Home::device);
  EXPECT_EQ(held(away, 1), 1);
  EXPECT_EQ(held(away, 0.99), 15.0 / 16);
  EXPECT_EQ(held(away, 0.9), 14.0 / 16);
  EXPECT_EQ(held(with_homes(Home::disk, Home::host), 0.1), 1.0 / 16);
  EXPECT_EQ(held(away, 0.01), 1) << "none is held";
}

TEST(HeldPart, IsNoneThatAlternativesHaveAnyway) {
  EXPECT_EQ(held(with_homes(Home::host, Home::device), 0.76), 1);
  EXPECT_EQ(held(with_homes(Home::host, Home::host), 0.76), 0.75);
}

TEST(HeldPart, MayBeOneThatAlternativesHaveWhereTheyAreNotAsked) {
  const auto less = [](double most) {
    return with_less_held(with_homes(Home::host, Home::device),
                          [&](const Choices& some) { return some.optimizer_part <= most; });
  };
  EXPECT_EQ(less(0.76)->optimizer_part, 0.75);
  EXPECT_FALSE(less(1)) << "all is held";
  EXPECT_FALSE(less(0.01)) << "none is held";
}

TEST(HeldPart, StaysWhereStateIsOnTheDeviceOrGoesWithParametersOnADrive) {
  EXPECT_EQ(held(with_homes(Home::device, Home::device), 0.5), 1);
  EXPECT_EQ(held(with_homes(Home::disk, Home::disk), 0.5), 1);
}

}  // namespace
}  // namespace strata::plan
