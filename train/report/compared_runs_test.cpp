// A page with the steps of several runs.
#include "train/report/compared_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "core/json.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHead = "step,loss,learning_rate,grad_norm,seconds,tokens_per_second\n";

class ComparedRuns : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = home_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  template <typename Call>
  std::string refusal(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "not refused";
  }
  TestDirectory home_;
};

TEST_F(ComparedRuns, StepsAreReadFromAFolderOrAFile) {
  const std::string file = write("run/steps.csv", std::string(kHead) + "3,nan,0.01,2,0.5,100\n");
  for (const std::string& path : {file, home_ / "run"}) {
    const ComparedRun run = read_compared_run(path);
    EXPECT_EQ(run.name, path);
    ASSERT_EQ(run.steps.size(), 1U);
    EXPECT_EQ(run.steps[0].step, 3);
    EXPECT_TRUE(std::isnan(run.steps[0].loss));
    EXPECT_EQ(run.steps[0].gradient_norm, 2);
  }
}

TEST_F(ComparedRuns, StepsAreReadFromMetrics) {
  constexpr const char* kLines =
      R"({"step": 4, "loss": null, "learning_rate": 0.01, "grad_norm": 2, "mfu": null, "seconds": 1}
{"step": 4, "eval_loss": 3.5}
{"step": 5, "loss": 3.25, "learning_rate": 0.02, "grad_norm": 1e1, "mfu": null, "seconds": 0.5}
{"steps": 2, "ranks": [{}]}
)";
  const ComparedRun run =
      read_compared_run(write("run.m", kLines + std::string(R"({"step": 6, "l)")));
  ASSERT_EQ(run.steps.size(), 2U);
  EXPECT_TRUE(std::isnan(run.steps[0].loss));
  EXPECT_EQ(run.steps[1].step, 5);
  EXPECT_EQ(run.steps[1].loss, 3.25);
  EXPECT_EQ(run.steps[1].learning_rate, 0.02);
  EXPECT_EQ(run.steps[1].gradient_norm, 10);
  EXPECT_EQ(run.steps[1].seconds, 0.5);
  const auto read = [&](const std::string& text) {
    return refusal([&] { (void)read_compared_run(write("bad.m", kLines + text)); });
  };
  EXPECT_THAT(read("{\n"), HasSubstr("bad.m:5: "));
  EXPECT_THAT(read("{\"step\": 7, \"loss\": 1}\n"), HasSubstr("bad.m:5: "));
  EXPECT_THAT(refusal([&] { (void)read_compared_run(write("none.m", "{\"steps\": 0}\n")); }),
              HasSubstr("none.m has no steps"));
}

TEST_F(ComparedRuns, MetricsMayHaveEmptyLines) {
  constexpr const char* kStep =
      R"({"step": 1, "loss": 2, "learning_rate": 0.1, "grad_norm": 2, "seconds": 1})";
  const ComparedRun run =
      read_compared_run(write("run.m", std::string("\n \r\n") + kStep + "\n\n" + kStep + "\n\n"));
  EXPECT_EQ(run.steps.size(), 2U);
  EXPECT_THAT(refusal([&] { (void)read_compared_run(write("bad.m", "\n{}\n{\n")); }),
              HasSubstr("bad.m:3: "));
}

TEST_F(ComparedRuns, SaysWhichRunsHaveNoSteps) {
  const auto read = [&](const std::string& text) {
    return refusal([&] { (void)read_compared_run(write("none.m", text)); });
  };
  EXPECT_THAT(read("{\"step\": 4, \"eval_loss\": 3.5}\n"),
              HasSubstr("none.m has no steps; all of its lines are about something else, as those "
                        "of a run that only evaluates"));
  EXPECT_THAT(read("{\"step\": 1, \"lo"), HasSubstr("a run that failed before its first step"));
  EXPECT_THAT(read(kHead), HasSubstr("it is of a plan, or of a run that failed before"));
  EXPECT_THAT(read(" \n"), HasSubstr("none.m has no steps; it is empty"));
}

TEST_F(ComparedRuns, WhatHasNoStepsIsRefused) {
  const auto read = [&](const std::string& path) {
    return refusal([&] { (void)read_compared_run(path); });
  };
  EXPECT_THAT(read(home_ / "gone"), HasSubstr("name the directory of train --memory-report"));
  EXPECT_THAT(read(write("none.csv", kHead)), HasSubstr("none.csv has no steps"));
  EXPECT_THAT(read(write("other.csv", "a,b\n1,2\n")), HasSubstr("misses the column step"));
  for (const std::string step : {"nan", "1e300", "1.5", "-inf"})
    EXPECT_THAT(read(write("odd.csv", std::string(kHead) + step + ",1,1,1,1,1\n")),
                HasSubstr("odd.csv:2: step: found '" + step + "', expected a whole number"));
}

TEST_F(ComparedRuns, ThePageHoldsThemWhereNoTextCanEndTheScript) {
  write("run/report.html", R"(<script>{"model":"a \"compared\":[]","compared":[],"z":1}</script>)");
  const ComparedRun other{.name = "</script>", .steps = {{.step = 7, .loss = 1.5, .seconds = 2}}};
  const std::string page = page_with_runs(home_ / "run", {other, other});
  ASSERT_TRUE(page.starts_with("<script>") && page.ends_with("</script>"));
  const JsonValue data = parse_json(page.substr(8, page.size() - 17), "page", {});
  EXPECT_EQ(data.at("name").as_string(), home_ / "run");
  EXPECT_EQ(data.at("model").as_string(), "a \"compared\":[]");
  const std::vector<JsonValue> runs = data.at("compared").elements();
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[1].at("name").as_string(), "</script>");
  EXPECT_EQ(runs[1].at("steps").at("loss").elements()[0].as_number(), 1.5);
  EXPECT_EQ(page.find("</script>"), page.size() - 9);
}

TEST_F(ComparedRuns, OtherPagesAreRefused) {
  EXPECT_THAT(refusal([&] { (void)page_with_runs(home_ / "run", {}); }),
              HasSubstr("there is no " + (home_ / "run/report.html")));
  write("run/report.html", "<html></html>");
  EXPECT_THAT(refusal([&] { (void)page_with_runs(home_ / "run", {}); }),
              HasSubstr("is the page of another version of Strata"));
}

}  // namespace
}  // namespace strata::train
