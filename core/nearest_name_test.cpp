#include "core/nearest_name.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(NearestName, IsTheOneOfFewestEdits) {
  EXPECT_EQ(nearest_name("rtx4090x", {"rtx3090", "rtx4090"}), "rtx4090");
  EXPECT_EQ(nearest_name("batch_sise", {"--batch-count", "--batch-size"}), "--batch-size");
  EXPECT_EQ(nearest_name("warp", {"Adam", "AdamW"}), "");
}

TEST(NearestName, IsAmongEquallyNearOnesTheOneNearerInLength) {
  EXPECT_EQ(nearest_name("AdamX", {"Adam", "AdamW"}), "AdamW") << "each is one edit away";
  EXPECT_EQ(nearest_name("AdamX", {"AdamW", "Adam"}), "AdamW");
  EXPECT_EQ(nearest_name("AdamX", {"AdamY", "AdamW"}), "AdamY") << "the first of two alike";
}

TEST(NearestName, MayBeginWithTheTypedNameOrBeginIt) {
  EXPECT_EQ(nearest_name("checkpoint", {"checkpoint-every"}), "checkpoint-every");
  EXPECT_EQ(nearest_name("checkpoint-every-hour", {"checkpoint"}), "checkpoint");
}

}  // namespace
}  // namespace strata
