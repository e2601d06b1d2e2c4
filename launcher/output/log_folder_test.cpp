#include "launcher/output/log_folder.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

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
    EXPECT_EQ(logs.keep_of_attempt(attempt, "report.txt", "why\n"),
              fmt::format("{}/attempt_{}/report.txt", logs.path(), attempt));
  }
  logs.keep_of_attempt(2, "report.txt", "no rank was here\n");
  logs.keep_of_run("gave_up.txt", "three alike\n");
  EXPECT_FALSE(logs.take_complaint());
  const std::string run = home / "a/b/run7";
  EXPECT_EQ(read_whole_file(run + "/attempt_1/rank_1/stdout.log", 100), "no newline at the end");
  EXPECT_EQ(read_whole_file(run + "/attempt_0/rank_2/stderr.log", 100), std::string("a\0b\n", 4));
  EXPECT_EQ(read_whole_file(run + "/attempt_1/report.txt", 100), "why\n");
  EXPECT_EQ(read_whole_file(run + "/attempt_2/report.txt", 100), "no rank was here\n");
  EXPECT_EQ(read_whole_file(run + "/gave_up.txt", 100), "three alike\n");
  EXPECT_EQ(mode_of(home / "a"), 0700u);
  EXPECT_EQ(mode_of(run), 0700u);
  EXPECT_EQ(mode_of(run + "/attempt_0/rank_2"), 0700u);
  EXPECT_EQ(mode_of(run + "/attempt_0/rank_2/stderr.log"), 0600u);
}

TEST(LogFolder, GoesOnBesideTheLogsOfTheRunThatItTakesUp) {
  const TestDirectory home;
  for (int again = 0; again < 3; ++again) {
    LogFolder logs(home / "logs", fmt::format("new{}", again));
    LogFolder of_agent(home / "logs", fmt::format("new{}", again), 1);
    EXPECT_TRUE(logs.move_to("old"));
    EXPECT_TRUE(of_agent.move_to("old"));
    EXPECT_EQ(logs.path(), home / "logs/old");
    logs.note(fmt::format("start {}", again));
    of_agent.note(fmt::format("start {}", again));
    logs.begin_attempt({.slots = {1}, .attempt = again}, 0);
    logs.write(0, OutputKind::standard_output, "line\n");
    logs.keep_of_attempt(again, "report.txt", "why\n");
    EXPECT_FALSE(logs.take_complaint());
    EXPECT_FALSE(of_agent.take_complaint());
    EXPECT_FALSE(std::filesystem::exists(home / fmt::format("logs/new{}", again)));
    const std::string ending = again == 0 ? ".log" : fmt::format(".again_{}.log", again);
    for (const char* name : {"mlaunch", "mlaunch.1"})
      EXPECT_TRUE(read_whole_file(home / ("logs/old/" + (name + ending)), 1000)
                      .ends_with(fmt::format(" start {}\n", again)));
    EXPECT_EQ(read_whole_file(home / fmt::format("logs/old/attempt_{}/report.txt", again), 100),
              "why\n");
  }
}

TEST(LogFolder, OfAnAgentThatWasStartedAnewLiesBesideThatOfTheOneBefore) {
  const TestDirectory home;
  const LogFolder of_run(home / "logs", "run7");
  for (const char* name : {"mlaunch.1.log", "mlaunch.1.again_1.log", "mlaunch.1.again_2.log"}) {
    home.file("logs/run7/.room.1.part", "of one that was killed as it tried the disk");
    LogFolder of_agent(home / "logs", "run7", 1);
    of_agent.note(name);
    EXPECT_FALSE(of_agent.take_complaint());
    EXPECT_TRUE(read_whole_file(of_run.path() + "/" + name, 1000)
                    .ends_with(std::string(" ") + name + "\n"));
  }
}

TEST(LogFolder, LeavesWhatARunHasThatItTookUpOnlyAtFirst) {
  const TestDirectory home;
  LogFolder(home / "logs", "first").keep_of_run("gave_up.txt", "of first\n");
  LogFolder(home / "logs", "first", 1).note("of first");
  LogFolder logs(home / "logs", "new");
  EXPECT_TRUE(logs.move_to("first"));
  LogFolder of_agent(home / "logs", "first", 1);  // mlaunch.1.again_1.log
  for (int again = 0; again < 2; ++again) {
    const std::string run = fmt::format("run{}", again);
    EXPECT_TRUE(logs.move_to(run));
    EXPECT_TRUE(of_agent.move_to(run));
    EXPECT_EQ(logs.path(), home / ("logs/" + run));
    EXPECT_EQ(of_agent.path(), home / ("logs/" + run));
    EXPECT_TRUE(std::filesystem::exists(home / ("logs/" + run + "/mlaunch.again_1.log")));
    EXPECT_TRUE(std::filesystem::exists(home / ("logs/" + run + "/mlaunch.1.again_1.log")));
  }
  EXPECT_FALSE(logs.take_complaint());
  EXPECT_FALSE(of_agent.take_complaint());
  for (const char* name : {"gave_up.txt", "mlaunch.log", "mlaunch.1.log"})
    EXPECT_TRUE(std::filesystem::exists(home / (std::string("logs/first/") + name))) << name;
}

TEST(LogFolder, GivesAFileThatIsMovedOneNumber) {
  const TestDirectory home;
  LogFolder(home / "logs", "old", 1).note("of old");
  LogFolder(home / "logs", "old", 1).note("of old");
  LogFolder(home / "logs", "new", 1).note("of new");
  LogFolder of_agent(home / "logs", "new", 1);  // mlaunch.1.again_1.log
  EXPECT_TRUE(of_agent.move_to("old"));
  EXPECT_TRUE(std::filesystem::exists(home / "logs/old/mlaunch.1.again_2.log"));
}

TEST(LogFolder, StaysWhereItIsIfItCannotMove) {
  const TestDirectory home;
  LogFolder logs(home / "logs", "run7");
  const std::string nowhere(300, 'x');
  EXPECT_FALSE(logs.move_to(nowhere));
  EXPECT_EQ(logs.take_complaint(), "--log-dir: the logs stay in " + (home / "logs/run7") +
                                       ": moving them to " + (home / ("logs/" + nowhere)) +
                                       " failed (File name too long)");
  logs.note("it goes on");
  EXPECT_FALSE(logs.take_complaint());
  EXPECT_NE(read_whole_file(home / "logs/run7/mlaunch.log", 1000).find("it goes on"),
            std::string::npos);
}

TEST(LogFolder, OfAnAgentIsMadeAnewWhereHost0MovesItMeanwhile) {
  const TestDirectory home;
  for (int run = 0; run < 50; ++run) {
    const std::string fresh = home / fmt::format("logs/new{}", run);
    const std::string old = fmt::format("old{}", run);
    LogFolder logs(home / "logs", fmt::format("new{}", run));
    std::atomic<bool> watches = false;
    std::thread host_0([&] {
      watches = true;
      while (!std::filesystem::exists(fresh + "/.room.1.part") &&
             !std::filesystem::exists(fresh + "/mlaunch.1.log")) {
      }
      EXPECT_TRUE(logs.move_to(old));
    });
    while (!watches) {
    }
    std::optional<LogFolder> of_agent;
    EXPECT_NO_THROW(of_agent.emplace(home / "logs", fmt::format("new{}", run), 1));
    host_0.join();
    ASSERT_TRUE(of_agent);
    EXPECT_TRUE(of_agent->move_to(old));
    EXPECT_FALSE(of_agent->take_complaint());
    EXPECT_TRUE(std::filesystem::exists(home / ("logs/" + old + "/mlaunch.1.log")));
    EXPECT_FALSE(std::filesystem::exists(fresh));
  }
}

TEST(LogFolder, RefusesAFolderThatCannotBeMade) {
  const TestDirectory home;
  const std::string file = home.file("taken", "x");
  EXPECT_THROW(LogFolder(file, "run7"), HostError);
  LogFolder first(home / "logs", "run7");
  EXPECT_THROW(LogFolder(home / "logs", "run7"), HostError) << "a run's folder is its own";
}

TEST(LogFolder, LiesInAFolderThatMayBeTriedBefore) {
  const TestDirectory home;
  EXPECT_THROW(LogFolder::make_parent(home.file("taken", "x")), HostError);
  LogFolder::make_parent(home / "a/logs");
  LogFolder::make_parent(home / "a/logs");
  EXPECT_TRUE(std::filesystem::is_empty(home / "a/logs"));
  EXPECT_THROW(LogFolder::make_parent(home / "b/" + std::string(300, 'x')), HostError);
  EXPECT_FALSE(std::filesystem::exists(home / "b"));
}

TEST(LogFolder, LeavesNoFolderOfItsOwnWhereItIsRefused) {
  const TestDirectory home;
  std::filesystem::create_directory(home / "a");
  EXPECT_THROW(LogFolder(home / "a/b/c/" + std::string(300, 'x'), "run7"), HostError);
  EXPECT_FALSE(std::filesystem::exists(home / "a/b"));
  EXPECT_TRUE(std::filesystem::exists(home / "a")) << "that was there";
}

TEST(LogFolder, IsMadeWhereOthersThatAreRefusedRemoveTheFoldersOfTheirs) {
  const TestDirectory home;
  std::atomic<bool> ends = false;
  std::thread refused([&] {
    while (!ends)
      EXPECT_THROW(LogFolder(home / "new/logs/" + std::string(300, 'x'), "other"), HostError);
  });
  for (int run = 0; run < 300; ++run) {
    EXPECT_NO_THROW(LogFolder(home / "new/logs", "run7"));
    std::filesystem::remove_all(home / "new/logs/run7");
    (void)::rmdir((home / "new/logs").c_str());
    (void)::rmdir((home / "new").c_str());
  }
  ends = true;
  refused.join();
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
  EXPECT_EQ(logs.keep_of_attempt(0, "report.txt", "why\n"), "");
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
  EXPECT_FALSE(logs.move_to("old")) << "nothing is kept there";
  EXPECT_FALSE(logs.take_complaint());
}

}  // namespace
}  // namespace strata::launcher
