#include "launcher/output/log_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/testing/test_directory.h"

namespace strata::launcher {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
  return info.st_mode & 0777;
}

TEST(LogFolder, KeepsWhatEachRankOfEachAttemptWrites) {
  const TestDirectory home;
  LogFolder logs(home / "a/b", "run7");
  for (int attempt = 0; attempt < 2; ++attempt) {
    logs.begin_attempt({.slots = {1, 2}, .attempt = attempt}, 1);
    logs.write(0, OutputKind::standard_output, "no newline at");
    logs.write(0, OutputKind::standard_output, " the end");
    logs.write(1, OutputKind::standard_error, std::string("a\0b\n", 4));
    logs.keep_of_attempt("report.txt", "why\n");
  }
  logs.keep_of_run("gave_up.txt", "three alike\n");
  EXPECT_FALSE(logs.take_complaint());
  const std::string run = home / "a/b/run7";
  EXPECT_EQ(read_whole_file(run + "/attempt_1/rank_1/stdout.log", 100), "no newline at the end");
  EXPECT_EQ(read_whole_file(run + "/attempt_0/rank_2/stderr.log", 100), std::string("a\0b\n", 4));
  EXPECT_EQ(read_whole_file(run + "/attempt_1/report.txt", 100), "why\n");
  EXPECT_EQ(read_whole_file(run + "/gave_up.txt", 100), "three alike\n");
  EXPECT_EQ(mode_of(home / "a"), 0700u);
  EXPECT_EQ(mode_of(run), 0700u);
  EXPECT_EQ(mode_of(run + "/attempt_0/rank_2"), 0700u);
  EXPECT_EQ(mode_of(run + "/attempt_0/rank_2/stderr.log"), 0600u);
}

TEST(LogFolder, RefusesAFolderThatCannotBeMade) {
  const TestDirectory home;
  const std::string file = home.file("taken", "x");
  EXPECT_THROW(LogFolder(file, "run7"), HostError);
  LogFolder first(home / "logs", "run7");
  EXPECT_THROW(LogFolder(home / "logs", "run7"), HostError) << "a run's folder is its own";
}

TEST(LogFolder, LeavesNoFolderOfItsOwnWhereItIsRefused) {
  const TestDirectory home;
  std::filesystem::create_directory(home / "a");
  EXPECT_THROW(LogFolder(home / "a/b/c/" + std::string(300, 'x'), "run7"), HostError);
  EXPECT_FALSE(std::filesystem::exists(home / "a/b"));
  EXPECT_TRUE(std::filesystem::exists(home / "a")) << "that was there";
}

TEST(LogFolder, NotesFirstLinesWithTheTime) {
  const TestDirectory home;
  LogFolder logs(home / "logs", "run7");
  logs.note("mlaunch -np 2 train");
  logs.note("mlaunch: rank 1 failed\n  where   step 5");
  EXPECT_THAT(read_whole_file(logs.path() + "/mlaunch.log", 1000),
              testing::MatchesRegex("2[-0-9]+T[0-9:]+Z mlaunch -np 2 train\n"
                                    "2[-0-9]+T[0-9:]+Z mlaunch: rank 1 failed\n"));
}

TEST(LogFolder, KeepsReportsWholeOrNotAtAll) {
  const TestDirectory home;
  LogFolder logs(home / "logs", "run7");
  logs.begin_attempt({.slots = {1}}, 0);
  logs.end_attempt();
  logs.write(0, OutputKind::standard_output, "after the end");
  const std::string attempt = logs.path() + "/attempt_0";
  std::filesystem::create_directory(attempt + "/report.txt");  // what cannot be replaced
  logs.keep_of_attempt("report.txt", "why\n");
  EXPECT_NE(logs.take_complaint().value().find("renaming"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(attempt + "/report.txt.part"));
  EXPECT_EQ(read_whole_file(attempt + "/rank_0/stdout.log", 100), "");
}

TEST(LogFolder, SaysOnceThatLogsAreLostAndGoesOn) {
  const TestDirectory home;
  LogFolder logs(home / "logs", "run7");
  std::filesystem::remove_all(logs.path());
  logs.begin_attempt({.slots = {2}}, 0);
  logs.write(0, OutputKind::standard_output, "lost");
  logs.keep_of_run("gave_up.txt", "lost");
  const std::string complaint = logs.take_complaint().value();
  EXPECT_NE(complaint.find("goes on without logs"), std::string::npos) << complaint;
  EXPECT_FALSE(logs.take_complaint());
}

}  // namespace
}  // namespace strata::launcher
