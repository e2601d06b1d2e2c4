#include "launcher/output/kept_reports.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/testing/test_directory.h"

namespace strata::launcher {
namespace {

namespace fs = std::filesystem;

std::string id(int number) { return fmt::format("{:016x}", number); }

TEST(KeptReports, LieWhereTheUserKeepsTheStateOfPrograms) {
  EXPECT_EQ(KeptReports::place({.chosen = "c", .state = "/s", .home = "/h"}), "c");
  EXPECT_EQ(KeptReports::place({.state = "/s", .home = "/h"}), "/s/strata/runs");
  EXPECT_EQ(KeptReports::place({.state = "s", .home = "/h"}), "/h/.local/state/strata/runs");
  EXPECT_EQ(KeptReports::place({.chosen = ""}), "");
}

TEST(KeptReports, AreForTheirUserAlone) {
  const TestDirectory home;
  const KeptReports reports(home / "state/runs");
  const std::string path = reports.path_of(id(1), "attempt_0/report.txt");
  reports.keep(id(1), "attempt_0/report.txt", "it failed");
  EXPECT_EQ(path, home / "state/runs/" + id(1) + "/attempt_0/report.txt");
  EXPECT_EQ(read_whole_file(path, 100), "it failed");
  for (const std::string& folder : {std::string("state"), "state/runs/" + id(1)})
    EXPECT_EQ(fs::status(home / folder).permissions(), fs::perms::owner_all) << folder;
}

TEST(KeptReports, OfTheOldestRunsGo) {
  const TestDirectory home;
  fs::create_directories(home / "runs/other");
  const KeptReports reports(home / "runs");
  constexpr int kMost = KeptReports::kMostRuns;
  for (int run = 0; run < kMost; ++run) {
    reports.keep(id(run), "report.txt", "x");
    fs::last_write_time(home / "runs/" + id(run),
                        fs::file_time_type::clock::now() - std::chrono::hours(100 - run));
  }
  reports.keep(id(kMost), "report.txt", "x");
  reports.keep(id(kMost), "report.json", "x");
  EXPECT_FALSE(fs::exists(home / "runs/" + id(0)));
  EXPECT_TRUE(fs::exists(home / "runs/" + id(1)));
  EXPECT_TRUE(fs::exists(home / "runs/other")) << "it is no run";
}

TEST(KeptReports, OfRunsThatGoOnStayHoweverOldTheyAre) {
  const TestDirectory home;
  KeptReports(home / "runs").keep(id(0), "report.txt", "x");
  fs::last_write_time(home / "runs/" + id(0),
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  for (int run = 1; run <= static_cast<int>(KeptReports::kMostRuns); ++run)
    fs::create_directories(home / "runs/" + id(run));
  const auto nobody_knows = []() -> std::vector<std::string> { throw HostError("nobody knows"); };
  KeptReports(home / "runs", nobody_knows).keep(id(100), "report.txt", "x");
  EXPECT_TRUE(fs::exists(home / "runs/" + id(0)));
  KeptReports(home / "runs", [] { return std::vector{id(0)}; }).keep(id(101), "report.txt", "x");
  EXPECT_TRUE(fs::exists(home / "runs/" + id(0)));
  EXPECT_FALSE(fs::exists(home / "runs/" + id(1))) << "it has ended";
  KeptReports(home / "runs").keep(id(102), "report.txt", "x");
  EXPECT_FALSE(fs::exists(home / "runs/" + id(0))) << "it has ended, too";
}

TEST(KeptReports, SayWhyTheyCannotBeKept) {
  const TestDirectory home;
  write_file_atomically(home / "file", "");
  EXPECT_THROW(KeptReports(home / "file/runs").keep(id(1), "report.txt", "x"), HostError);
  fs::create_symlink("loop", home / "loop");
  EXPECT_THROW(KeptReports(home / "loop").keep(id(1), "report.txt", "x"), HostError);
  EXPECT_EQ(KeptReports("").path_of(id(1), "report.txt"), "");
  EXPECT_NO_THROW(KeptReports("").keep(id(1), "report.txt", "x"));
}

}  // namespace
}  // namespace strata::launcher
