// --report-to, --logging-dir and DeepSpeed's monitors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/config/testing/settled_options.h"

namespace strata::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ResolveLogs, ToolsWithFilesAreKeptAndOthersNoted) {
  const ResolvedConfig resolved =
      resolve_flags({"--report_to", "TensorBoard", "wandb,csv", "csv", "--logging_dir", "x"});
  EXPECT_THAT(resolved.options.logs.report_to, ElementsAre("tensorboard", "csv"));
  EXPECT_EQ(resolved.options.logs.directory, "x");
  EXPECT_THAT(lines(resolved.notes), HasSubstr("--report-to wandb: accepted, unused"));
  EXPECT_THAT(resolve_flags({"--report_to", "all"}).options.logs.report_to,
              ElementsAre("tensorboard"));
}

TEST(ResolveLogs, NoneAsksForNothing) {
  const ResolvedConfig resolved = resolve_flags({"--report_to", "none", "--logging_dir", "x"});
  EXPECT_THAT(resolved.options.logs.report_to, IsEmpty());
  EXPECT_THAT(lines(resolved.notes), HasSubstr("--logging-dir: nothing is written there"));
  EXPECT_THAT(resolve_flags({"--report_to", "none"}).notes, IsEmpty());
}

TEST(ResolveLogs, UnknownToolsAreRefusedWithTheNearest) {
  try {
    resolve_flags({"--report-to", "tensorbord"});
    FAIL() << "not refused";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("--report-to: found 'tensorbord', expected tensorboard, "
                                        "csv or none, did you mean 'tensorboard'?"));
  }
}

TEST(ResolveLogs, DeepSpeedsMonitorsAreObeyed) {
  const TrainOptions options =
      resolve_text(with_batch(R"("tensorboard": {"enabled": true, "output_path": "a"},
      "csv_monitor": {"enabled": false, "output_path": "b", "job_name": "c"})"))
          .options;
  EXPECT_TRUE(options.logs.tensorboard.enabled);
  EXPECT_EQ(options.logs.tensorboard.output_path, "a");
  EXPECT_EQ(options.logs.tensorboard.job_name, "DeepSpeedJobName");
  EXPECT_FALSE(options.logs.csv.enabled);
  EXPECT_THAT(refusal(with_batch(R"("tensorboard": {"enabled": "auto"})")), IsEmpty());
  EXPECT_THAT(refusal(with_batch(R"("csv_monitor": {"enabled": 3})")),
              HasSubstr("csv_monitor.enabled"));
}

}  // namespace
}  // namespace strata::train
