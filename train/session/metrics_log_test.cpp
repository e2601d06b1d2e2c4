#include "train/session/metrics_log.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "core/file.h"
#include "core/testing/test_directory.h"

namespace strata::train {
namespace {

class MetricsLogTest : public testing::Test {
 protected:
  void given(const std::string& text) const { write_file_atomically(path_, text); }
  [[nodiscard]] std::string content() const { return read_whole_file(path_, 1 << 20); }

  TestDirectory directory_;
  std::string path_ = directory_ / "metrics.jsonl";
};

constexpr const char* kOne = "{\"step\": 1, \"loss\": 3}\n";
constexpr const char* kTwo = "{\"step\": 2, \"loss\": 2}\n";
constexpr const char* kThree = "{\"step\": 3, \"eval_loss\": 2}\n";
constexpr const char* kOther = "{\"steps\": 9, \"ranks\": []}\nno JSON\n";

TEST_F(MetricsLogTest, ARunFromTheBeginningBeginsEmpty) {
  given(kOne);
  { const MetricsLog log(path_); }
  EXPECT_EQ(content(), "");
}

TEST_F(MetricsLogTest, LinesOfAnEarlierRunArePutAside) {
  EXPECT_EQ(put_earlier_metrics_aside(path_), "");
  given("");
  EXPECT_EQ(put_earlier_metrics_aside(path_), "");
  const std::map<std::string, std::string> aside{
      {path_ + ".old", kOne}, {path_ + ".old.2", kTwo}, {path_ + ".old.3", kOther}};
  for (const auto& [name, text] : aside) {
    given(text.starts_with('{') ? text : kThree);
    EXPECT_EQ(put_earlier_metrics_aside(path_), name);
    EXPECT_FALSE(is_name_taken(path_));
  }
  EXPECT_EQ(read_whole_file(path_ + ".old", 1 << 20), kOne) << "nothing of before is lost";
  EXPECT_EQ(put_earlier_metrics_aside("/dev/null"), "");
  given("All the world's a stage,\n");
  EXPECT_THROW(put_earlier_metrics_aside(path_), InvalidArgument);
  EXPECT_EQ(content(), "All the world's a stage,\n");
}

TEST_F(MetricsLogTest, WhatALinkLeadsToIsPutAsideToo) {
  const std::string link = directory_ / "link.jsonl";
  std::filesystem::create_symlink("metrics.jsonl", link);
  EXPECT_EQ(put_earlier_metrics_aside(link), "") << "nothing is there";
  given(kOne);
  EXPECT_EQ(put_earlier_metrics_aside(link), path_ + ".old");
  { const MetricsLog log(link); }
  EXPECT_EQ(content(), "");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  given("notes\n");
  EXPECT_THROW(put_earlier_metrics_aside(link), InvalidArgument);
}

TEST_F(MetricsLogTest, WhatCannotBeCutWholeStaysAsItWas) {
  std::signal(SIGXFSZ, SIG_IGN);
  const std::string before = std::string(kOne) + kTwo + kOther;
  given(before);
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  const rlimit small{std::string_view(kOne).size() + 3, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(MetricsLog(path_, 1), IoError);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
  EXPECT_EQ(content(), before);
}

TEST_F(MetricsLogTest, ResumingCutsLaterStepsAndWhatWasTorn) {
  for (const std::string torn : {"", "{\"step\": 1, \"lo", "{\"st"}) {
    given(std::string(kOne) + kTwo + kOther + kThree + kTwo + kThree + kOther + torn);
    { const MetricsLog log(path_, 2); }
    EXPECT_EQ(content(), std::string(kOne) + kTwo + kOther + kTwo + kOther) << torn;
    { const MetricsLog log(path_, 1); }
    EXPECT_EQ(content(), std::string(kOne) + kOther + kOther) << torn;
  }
}

TEST_F(MetricsLogTest, NothingIsCutWhereNothingIsLater) {
  given(std::string(kOne) + kTwo + kOther);
  { const MetricsLog log(path_, 2); }
  EXPECT_EQ(content(), std::string(kOne) + kTwo + kOther);
  std::string many;
  for (int step = 1; step <= 60000; ++step)
    many += "{\"step\": " + std::to_string(step) + ", \"loss\": 1}\n";
  given(many);  // more than one read returns
  { const MetricsLog log(path_, 30000); }
  EXPECT_TRUE(many.starts_with(content()));
  EXPECT_TRUE(content().ends_with("{\"step\": 30000, \"loss\": 1}\n"));
}

TEST_F(MetricsLogTest, AFullDiskIsToldOnceAndTearsNoLine) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  int told = 0;
  MetricsLog log(path_, 0, [&](const IoError&) { ++told; });
  log.write(Evaluated{1, 9, 2});
  const std::string whole = content();
  const rlimit small{whole.size() + 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  for (const int step : {2, 3}) log.write(Evaluated{step, 9, 2});
  EXPECT_EQ(content(), whole);
  EXPECT_EQ(told, 1);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);  // now there is space again
  log.write(Evaluated{4, 9, 2});
  EXPECT_EQ(content(), whole + "{\"step\": 4, \"eval_loss\": 2}\n");
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace strata::train
