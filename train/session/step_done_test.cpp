// Checks what the progress line and the metrics file say of one step.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "core/testing/test_directory.h"
#include "train/run/step_meter.h"
#include "train/session/metrics_log.h"
#include "train/session/progress.h"

namespace strata::train {
namespace {

StepDone report(std::optional<double> mfu) {
  StepDone r;
  r.step = 1;
  r.steps = 10;
  r.seconds = 2;
  r.smoothed_seconds = 4;
  r.tokens_per_second = 30958;
  r.flops_per_second = 6e14;
  r.mfu = mfu;
  return r;
}

std::string shown(const StepDone& r) { return fit_fields(progress_fields(r), 0); }

std::string written(const StepDone& r) {
  const TestDirectory directory;
  const std::string path = directory / "metrics.jsonl";
  MetricsLog(path).write(r);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(StepDone, UtilizationIsShownWhereThePeakIsKnown) {
  EXPECT_NE(shown(report(0.592)).find("  MFU 29.6 %  arena"), std::string::npos);
  EXPECT_EQ(shown(report({})).find("MFU"), std::string::npos);
}

TEST(StepDone, SpeedsAreSmoothedLikeTheTimeThatIsLeft) {
  SmoothedSeconds smoothed;
  EXPECT_EQ(smoothed.add(100), 100);  // the first step touches all memory
  EXPECT_EQ(smoothed.add(2), 2);
  EXPECT_EQ(smoothed.add(0.001), 1.0005);  // two steps' metrics came together
  for (int step = 0; step < 100; ++step) smoothed.add(5);
  EXPECT_NEAR(smoothed.add(5), 5, 0.01);

  SmoothedSeconds short_steps;  // so that the mean is over twenty seconds
  for (int step = 0; step < 4000; ++step) short_steps.add(0.01);
  for (int step = 0; step < 10; ++step) short_steps.add(0.1);
  EXPECT_NEAR(short_steps.add(0.01), 0.01045, 1e-5);
}

TEST(StepDone, UtilizationIsAFractionInTheMetrics) {
  EXPECT_NE(written(report(0.5)).find("\"mfu\": 0.5, "), std::string::npos);
  EXPECT_NE(written(report({})).find("\"mfu\": null, "), std::string::npos);
}

}  // namespace
}  // namespace strata::train
