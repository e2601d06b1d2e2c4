// Checks what is said where nothing fits.
#include "train/planning/refusal_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/config/make_plan.h"
#include "train/config/testing/settled_options.h"
#include "train/planning/testing/planned_runs.h"

namespace strata::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(RefusalText, SaysHowToGoOnFromASearchThatEndedEarly) {
  const ResolvedConfig config = resolve_flags({});
  PlannedRun planned = asked_run(config.options);
  planned.answer.complete = false;
  planned.answer.chosen.reset();
  planned.answer.refusal = plan::PlannerRefusal::too_large;
  EXPECT_THAT(describe_refusal(planned, config, {}),
              HasSubstr("ended early, and less memory may do: give one or two settings"));
  EXPECT_FALSE(names_least_target(planned.answer, config, large_device()));
  planned.answer.smallest = planned.answer.unlimited;
  EXPECT_TRUE(names_least_target(planned.answer, config, large_device()));
  EXPECT_THAT(describe_refusal(planned, config, large_device()),
              HasSubstr("ended early, and less memory may do: try a smaller --target-memory than "
                        "that, or give one or two settings"));
}

TEST(RefusalText, NamesTheFolderThatTheSmallestPlanNeedsOnADrive) {
  const auto refusal = [](const ResolvedConfig& config) {
    PlannedRun planned;
    planned.answer.refusal = plan::PlannerRefusal::too_large;
    planned.answer.smallest = plan::PlannedStep{.choices = choices_of(config.options)};
    planned.answer.smallest->choices.optimizer = plan::Home::disk;
    return describe_refusal(planned, config, {});
  };
  EXPECT_THAT(refusal(resolve_flags({})),
              HasSubstr("with --offload-optimizer nvme --nvme-path DIR: "));
  EXPECT_THAT(refusal(resolve_flags({"--nvme-path", "drive"})), Not(HasSubstr("DIR")));
}

}  // namespace
}  // namespace strata::train
