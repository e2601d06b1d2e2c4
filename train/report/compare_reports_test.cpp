#include "train/report/compare_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "core/testing/test_directory.h"
#include "train/report/csv_table.h"

namespace strata::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

StoredReport foreseen() {
  StoredReport report{.directory = "A"};
  report.about = {.model = "m",
                  .parameters = 10,
                  .blocks = {"embedding", "head"},
                  .device = "CPU",
                  .ranks = 1,
                  .foreseen_seconds = 2,
                  .arena_bytes = {{"device", 1 << 20}, {"pinned", 0}, {"disk", 1 << 30}},
                  .process_bytes = 2 << 20,
                  .settings = {{"steps", "0"}, {"zero.stage", "1"}}};
  report.peaks = {{"device", {1000 << 10, {}}}, {"pinned", {}}, {"disk", {1 << 30, {}}}};
  report.operations = {{"near", "forward", "compute", 2, 10, {}},
                       {"far", "backward", "compute", 1, 10, {}},
                       {"unknown", "forward", "compute", 1, 1000, {}},
                       {"gone", "forward", "upload", 1, 3, {}}};
  return report;
}

StoredReport measured() {
  StoredReport report = foreseen();
  report.directory = "B";
  report.about.settings = {{"steps", "4"}, {"zero.stage", "2"}};
  report.operations = {{"near", "forward", "compute", 2, 99, 11},
                       {"far", "backward", "compute", 1, 99, 4},
                       {"unknown", "forward", "compute", 1, 99, {}},
                       {"new", "update", "host", 1, 99, 1}};
  report.step_seconds = {100, 100, 3, 5};
  report.peak_rss_bytes = 3 << 20;
  report.peaks["device"].reached = 990 << 10;
  return report;
}

std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CompareReports, WhatDiffersMostComesFirst) {
  const std::vector<OperationDifference> rows = differences(foreseen(), measured());
  std::vector<std::pair<std::string, double>> found;
  for (const OperationDifference& row : rows)
    found.emplace_back(row.of.operation, row.difference_ms());
  EXPECT_EQ(found, (std::vector<std::pair<std::string, double>>{
                       {"far", -6}, {"gone", -3}, {"near", 1}, {"new", 1}}));
}

TEST(CompareReports, TextSaysStepsMemoryAndSettings) {
  const std::string text = comparison_text(foreseen(), measured());
  EXPECT_THAT(text, HasSubstr("step: foreseen 2 s, measured 4 s (2.00 x), the mean of 2 steps, "
                              "without the first 2\n"));
  EXPECT_THAT(text, testing::ContainsRegex("far +backward +compute +1 +10 +4 +0.40 +-6\n"));
  EXPECT_THAT(text, testing::ContainsRegex("new +update +host +1 +0 +1 +- +\\+1\n"));
  EXPECT_THAT(text, testing::ContainsRegex("device arena +1.00 MiB +1.00 MiB +1.00 +-\n"));
  EXPECT_THAT(text, testing::ContainsRegex("disk arena +1.00 GiB"));
  EXPECT_THAT(text, Not(HasSubstr("pinned")));
  EXPECT_THAT(text,
              testing::ContainsRegex("process, highest +2.00 MiB +3.00 MiB +1.50 +\\+1.00 MiB\n"));
  EXPECT_THAT(text, testing::ContainsRegex(
                        "device buffers, highest +1000.00 KiB +990.00 KiB +0.99 +-10.00 KiB\n"));
  EXPECT_THAT(text, testing::ContainsRegex("disk buffers, highest +1.00 GiB +not known +- +-\n"));
  EXPECT_THAT(text, HasSubstr("  zero.stage: 1 foreseen, 2 measured\n"));
  EXPECT_THAT(text, Not(HasSubstr("steps:")));
}

TEST(CompareReports, SettingsThatDifferComeFirst) {
  StoredReport run = measured();
  run.about.settings["offload.layer_major"] = "true";
  const std::string text = comparison_text(foreseen(), run);
  EXPECT_EQ(text.find("what was foreseen is not what was run"), 0U);
  EXPECT_LT(text.find("  zero.stage: 1 foreseen, 2 measured\n"), text.find("step: foreseen"));
  EXPECT_THAT(text, HasSubstr("  offload.layer_major: nothing foreseen, true measured\n"));
  run.about = foreseen().about;
  EXPECT_EQ(comparison_text(foreseen(), run).find("step: foreseen"), 0U);
}

TEST(CompareReports, SettingsThatChangeNoFigureAreNotNamed) {
  StoredReport run = measured();
  run.about = foreseen().about;
  for (const char* name : {"data", "write_plan", "logs.report_to", "logs.csv.output_path"})
    run.about.settings[name] = "value";
  EXPECT_EQ(comparison_text(foreseen(), run).find("step: foreseen"), 0U);
}

TEST(CompareReports, AnOptionThatIsNotSetIsSaidToBeNothing) {
  StoredReport plan = foreseen(), run = measured();
  plan.about.settings["target.memory"] = "400MB";
  run.about.settings["target.memory"] = "";
  EXPECT_THAT(comparison_text(plan, run),
              HasSubstr("  target.memory: 400MB foreseen, nothing measured\n"));
  plan.about.settings["target.memory"] = "";
  run.about.settings.erase("target.memory");  // of a build that does not have it
  EXPECT_THAT(comparison_text(plan, run), Not(HasSubstr("target.memory")));
}

TEST(CompareReports, TheLastStepCountsEvenInAShortRun) {
  StoredReport run = measured();
  run.step_seconds = {100, 4};
  EXPECT_THAT(comparison_text(foreseen(), run),
              HasSubstr("measured 4 s (2.00 x), the mean of 1 step, without the first\n"));
  run.step_seconds = {4};
  EXPECT_THAT(comparison_text(foreseen(), run), HasSubstr("(2.00 x), the mean of 1 step\n"));
}

TEST(CompareReports, AnotherDeviceIsSaid) {
  StoredReport run = measured();
  run.about = foreseen().about;
  EXPECT_THAT(comparison_text(foreseen(), run), Not(HasSubstr("device:")));
  run.about.device = "NVIDIA H200";
  EXPECT_THAT(comparison_text(foreseen(), run),
              HasSubstr("  device: CPU foreseen, NVIDIA H200 measured\n"));
}

TEST(CompareReports, MemoryThatDiffersMostComesFirst) {
  StoredReport run = measured();
  run.device_bytes = 5 << 20;
  run.about.arena_bytes["device"] = 3 << 20;
  std::vector<std::string> found;
  for (const MemoryDifference& row : memory_differences(foreseen(), run))
    found.push_back(row.memory);
  EXPECT_EQ(found, (std::vector<std::string>{"device in use, highest", "device arena",
                                             "process, highest", "device buffers, highest",
                                             "disk arena", "disk buffers, highest"}));
}

TEST(CompareReports, ADeviceOfItsOwnIsNoMemoryOfTheProcess) {
  StoredReport run = measured();
  run.device_bytes = 5 << 20;
  const std::string text = comparison_text(foreseen(), run);
  EXPECT_THAT(text, testing::ContainsRegex("process, highest +2.00 MiB +3.00 MiB"));
  EXPECT_THAT(text, testing::ContainsRegex(
                        "device in use, highest +1.00 MiB +5.00 MiB +5.00 +\\+4.00 MiB\n"));
}

TEST(CompareReports, ARunThatMeasuredNoInstructionsSaysWhatItNeeds) {
  StoredReport run = measured();
  for (OperationTotal& row : run.operations) row.measured_ms.reset();
  EXPECT_THAT(comparison_text(foreseen(), run), HasSubstr("on a GPU --trace or --profile"));
}

TEST(CompareReports, WhatCannotBeComparedIsRefused) {
  StoredReport plan = measured();
  plan.step_seconds.clear();
  EXPECT_THAT(refusal([&] { (void)differences(foreseen(), plan); }),
              HasSubstr("B is the report of a plan, and nothing was measured there"));
  StoredReport other = measured();
  other.about.parameters = 11;
  EXPECT_THAT(refusal([&] { (void)differences(foreseen(), other); }),
              HasSubstr("A is about another model than B: m with 10 parameters in 2 blocks, and "
                        "m with 11 in 2"));
  other = measured();
  other.about.blocks = {"head"};
  EXPECT_THAT(refusal([&] { (void)differences(foreseen(), other); }), HasSubstr("another model"));
}

TEST(CompareReports, WhatAReportIsAboutIsReadBackTheSame) {
  const std::string text = about_json(foreseen().about);
  EXPECT_EQ(about_json(read_about(text, "about.json")), text);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    return refusal([&] { (void)read_about(other, "about.json"); });
  };
  EXPECT_THAT(changed("\"version\": 2", "\"version\": 7"),
              HasSubstr("about.json:2: version: expected 2, found integer 7: the report is of "
                        "another version; write it again with this one"));
  EXPECT_THAT(changed("\"model\"", "\"modal\""), HasSubstr("modal: unknown key, expected one of"));
  EXPECT_THAT(changed("\"ranks\": 1", "\"ranks\": -1"),
              HasSubstr("ranks: expected a number from 0, found integer -1"));
}

TEST(CompareReports, ADirectoryWithoutAReportIsNamed) {
  const TestDirectory directory;
  (void)directory.file("about.json", about_json(foreseen().about));
  const std::string path = directory.path();
  EXPECT_THAT(refusal([&] { (void)read_report(path); }),
              HasSubstr(path +
                        " holds no memory report: it has no operations.csv; train "
                        "--memory-report " +
                        path + " writes one"));
}

TEST(CsvTable, FieldsAreUnquotedAndNumbersAreNumbers) {
  const CsvTable table("name,ms\n\"a,\"\"b\"\"\",1.5\nc,\n", "x.csv");
  EXPECT_EQ(table.rows(), 2U);
  EXPECT_EQ(table.text(0, "name"), "a,\"b\"");
  EXPECT_EQ(table.number(0, "ms"), 1.5);
  EXPECT_FALSE(table.number_if_any(1, "ms"));
  EXPECT_THAT(refusal([&] { (void)table.number(1, "name"); }),
              HasSubstr("x.csv:3: name: expected a number, found 'c'"));
  EXPECT_THAT(refusal([&] { (void)table.text(0, "mss"); }),
              HasSubstr("x.csv:1: misses the column mss"));
  EXPECT_THAT(refusal([] { (void)CsvTable("a,b\n1\n", "x.csv"); }),
              HasSubstr("x.csv:2: expected 2 fields, found 1"));
  EXPECT_THAT(refusal([] { (void)CsvTable("a\n\"1\n", "x.csv"); }),
              HasSubstr("x.csv:2: a quoted field does not end"));
  EXPECT_THAT(refusal([] { (void)CsvTable("", "x.csv"); }),
              HasSubstr("x.csv:1: expected a header line, found nothing"));
}

}  // namespace
}  // namespace strata::train
