#include "launcher/wire/own_build.h"

#include <gtest/gtest.h>

namespace strata::launcher {
namespace {

TEST(OwnBuild, HasAHashOfTheProgram) {
  EXPECT_TRUE(own_build("0.1").starts_with("Strata 0.1\nmlaunch "));
  EXPECT_EQ(own_build("0.1"), own_build("0.1"));
}

}  // namespace
}  // namespace strata::launcher
