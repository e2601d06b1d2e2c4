// What the progress line and the metrics file say of one step.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "core/test_directory.h"
#include "train/run/metrics_log.h"
#include "train/run/progress.h"

namespace strata::train {
namespace {

StepReport report(std::optional<double> mfu) {
  StepReport r;
  r.step = 1;
  r.seconds = 2;
  r.tokens_per_second = 30958;
  r.flops_per_second = 6e14;
  r.mfu = mfu;
  return r;
}

std::string shown(const StepReport& r) {
  testing::internal::CaptureStdout();
  Progress(true, false, 10, 1).show(r);
  return testing::internal::GetCapturedStdout();
}

std::string written(const StepReport& r) {
  const TestDirectory directory;
  const std::string path = directory / "metrics.jsonl";
  MetricsLog(path).write(r);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(StepReport, UtilizationIsShownWhereThePeakIsKnown) {
  EXPECT_NE(shown(report(0.593)).find("GFLOP/s per rank  MFU 59.3 %  arena"), std::string::npos);
  EXPECT_EQ(shown(report({})).find("MFU"), std::string::npos);
}

TEST(StepReport, UtilizationIsAFractionInTheMetrics) {
  EXPECT_NE(written(report(0.5)).find("\"mfu\": 0.5, "), std::string::npos);
  EXPECT_NE(written(report({})).find("\"mfu\": null, "), std::string::npos);
}

}  // namespace
}  // namespace strata::train
