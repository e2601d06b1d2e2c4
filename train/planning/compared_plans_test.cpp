// Checks the list of the plans that were compared.
#include "train/planning/compared_plans.h"

#include <gtest/gtest.h>

#include <vector>

#include "train/config/testing/settled_options.h"
#include "train/planning/testing/planned_runs.h"

namespace strata::train {
namespace {

TEST(ComparedPlans, ListsEachSetOfFlagsOnceAndTheChosenOneAsItWasChosen) {
  const ResolvedConfig config = resolve_flags({});
  PlannedRun planned = asked_run(config.options);
  const plan::Choices chosen = planned.answer.chosen->choices;
  plan::Choices other = chosen, large = chosen;
  other.again = plan::Again::everything;
  large.layer_major = true;
  planned.answer.attempts = {{chosen, 1, 1.3, ""},          {other, 2, 2.5, ""},
                             {large, 4, {}, "host memory"}, {chosen, 1, 1.4, ""},
                             {other, 2, 2.25, ""},          {other, 2, {}, "device memory"}};
  const std::vector<Compared> rows = compared(planned, config, {});
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_TRUE(rows[0].is_chosen);
  EXPECT_EQ(rows[0].attempt.seconds, 1.2);
  EXPECT_EQ(rows[1].attempt.seconds, 2.25);
  EXPECT_FALSE(rows[1].is_chosen || rows[2].is_chosen);
  EXPECT_EQ(rows[2].attempt.lacks, "host memory");
}

}  // namespace
}  // namespace strata::train
