#include <gtest/gtest.h>

#include "core/error.h"
#include "step/step.h"

namespace strata::step {
namespace {

TEST(CheckUpdates, BehindTheirGradientsOnlyWhereNothingOfTheWholeGradientEnters) {
  using kernels::ScaleMode;
  using kernels::StepRules;
  using runtime::Updates;
  const auto said = [](Updates updates, const StepRules& rules) -> std::string {
    runtime::Plan plan;
    plan.updates = updates;
    try {
      check_updates(plan, rules);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(said(Updates::gradient, {}), "");
  const struct {
    StepRules rules;
    const char* words;
  } cases[] = {{{.clip = 1}, "gradients are clipped to a norm"},
               {{.scale_mode = ScaleMode::dynamic, .skip_nonfinite = true}, "the loss is scaled"},
               {{.scale_mode = ScaleMode::constant}, "the loss is scaled"},
               {{.skip_nonfinite = true}, "steps that are not finite are skipped"}};
  for (const auto& [rules, words] : cases) {
    EXPECT_NE(said(Updates::gradient, rules).find(words), std::string::npos) << words;
    EXPECT_NE(said(Updates::gradient, rules).find("set updates to step_end"), std::string::npos);
    EXPECT_EQ(said(Updates::next_step, rules), "");
    EXPECT_EQ(said(Updates::step_end, rules), "");
  }
}

}  // namespace
}  // namespace strata::step
