// When mlaunch starts ranks again, and what it keeps of every attempt.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <sstream>

#include "core/file.h"
#include "core/host_name.h"
#include "core/json.h"
#include "core/testing/test_directory.h"
#include "tests/launcher/actors.h"

namespace strata::testing {
namespace {

// Fault 1.
TEST(Mlaunch, StartsRanksAgainThatHaveCommitted) {
  MlaunchProcess mlaunch(actors(2, {"commit", "40", "kfs"}));
  EXPECT_EQ(mlaunch.wait(), 0);
  EXPECT_TRUE(contains(mlaunch.error(), "rank 1 of 2 failed")) << mlaunch.error();
  EXPECT_TRUE(contains(mlaunch.error(),
                       "starting the ranks again from step 40, saved in out/step-40 (restart 1 of "
                       "3 in an hour)"));
  EXPECT_TRUE(contains(mlaunch.error(), "error   the flux is wrong"));
  EXPECT_TRUE(
      contains(mlaunch.error(), "again from step 80, saved in out/step-80 (restart 2 of 3"));
  EXPECT_TRUE(contains(mlaunch.output(), "[0] attempt 0 after step none\n"));
  EXPECT_TRUE(contains(mlaunch.output(), "[0] attempt 1 after step 45\n"));
  EXPECT_TRUE(contains(mlaunch.output(), "[0] attempt 2 after step 85\n"));
  expect_nothing_left(mlaunch);
}

// Fault 37.
TEST(Mlaunch, StartsNothingAgainThatWouldEndAlike) {
  MlaunchProcess configuration(actors(2, {"commit", "40", "kcs"}));
  EXPECT_EQ(configuration.wait(), 78);
  MlaunchProcess nothing_saved(actors(2, {"commit", "0", "ks"}));
  EXPECT_EQ(nothing_saved.wait(), 128 + SIGKILL);
  EXPECT_FALSE(contains(nothing_saved.error(), "starting the ranks again"));
  EXPECT_TRUE(contains(nothing_saved.error(), "nothing has been saved yet (train --save-every N"))
      << nothing_saved.error();
  MlaunchProcess told_not_to(actors(2, {"commit", "40", "ks"}, {"--max-restarts", "0"}));
  EXPECT_EQ(told_not_to.wait(), 128 + SIGKILL);
}

// Fault 37.
TEST(Mlaunch, GivesUpARunThatFailsAlike) {
  MlaunchProcess mlaunch(actors(2, {"commit", "0", "kkkk"}, {"--max-restarts", "9"}));
  EXPECT_EQ(mlaunch.wait(), 93);
  EXPECT_TRUE(contains(mlaunch.error(), "mlaunch: 3 starts failed alike at step 5"))
      << mlaunch.error();
  EXPECT_TRUE(contains(mlaunch.error(), "from the beginning: nothing has been saved"));
}

TEST(Mlaunch, KeepsLogsAndReportsOfEveryAttempt) {
  const TestDirectory home;
  MlaunchProcess mlaunch(actors(2, {"commit", "40", "kfs"}, {"--log-dir", home / "logs"}));
  EXPECT_EQ(mlaunch.wait(), 0);
  const std::string said = "mlaunch: logs of ranks are kept in " + home.path() + "/logs/";
  ASSERT_TRUE(mlaunch.error().starts_with(said)) << mlaunch.error();
  const std::string run =
      home.path() + "/logs/" +
      mlaunch.error().substr(said.size(), mlaunch.error().find('\n') - said.size());
  EXPECT_EQ(read_whole_file(run + "/attempt_2/rank_0/stdout.log", 1000),
            "attempt 2 after step 85\n");
  EXPECT_EQ(read_whole_file(run + "/attempt_2/rank_1/stdout.log", 1000), "");
  const std::string text = read_whole_file(run + "/attempt_1/report.txt", 100'000);
  const std::string id = std::filesystem::path(run).filename();
  EXPECT_TRUE(text.starts_with("run " + id + ", attempt 1, ended at 2")) << text;
  EXPECT_TRUE(contains(text, "mlaunch: rank 1 of 2 failed")) << text;
  EXPECT_TRUE(contains(text, "  error   the flux is wrong")) << text;
  EXPECT_TRUE(contains(mlaunch.error(), "  report  " + run + "/attempt_1/report.json\n")) << text;
  EXPECT_TRUE(contains(text,
                       "  resume  mlaunch itself started the ranks again from step 80, saved in "
                       "out/step-80\n"))
      << text;
  EXPECT_FALSE(contains(text + mlaunch.error(), "--resume auto")) << text;
  const JsonValue report =
      parse_json(read_whole_file(run + "/attempt_1/report.json", 100'000), "report.json", {});
  EXPECT_EQ(report.at("cause").as_string(), "failed rank");
  EXPECT_EQ(report.at("rank").as_integer(), 1);
  EXPECT_EQ(report.at("host").as_string(), host_name());
  EXPECT_EQ(report.at("exit_code").as_integer(), 1);
  EXPECT_TRUE(contains(report.at("ended_at").as_string(), "Z"));
  EXPECT_EQ(report.at("committed_step").as_integer(), 80);
  EXPECT_FALSE(std::filesystem::exists(run + "/attempt_2/report.txt"));
}

TEST(Mlaunch, KeepsALogOfWhatItDid) {
  const TestDirectory home;
  MlaunchProcess mlaunch(actors(2, {"commit", "40", "kfs"}, {"--log-dir", home / "logs"}));
  EXPECT_EQ(mlaunch.wait(), 0);
  const auto run = *std::filesystem::directory_iterator(home / "logs");
  std::istringstream log(read_whole_file(run.path().string() + "/mlaunch.log", 100'000));
  std::vector<std::string> texts;
  for (std::string line; std::getline(log, line);) {
    EXPECT_TRUE(line.starts_with("20") && line.substr(10, 1) == "T" && line.substr(19, 2) == "Z ")
        << line;
    texts.push_back(line.substr(21));
  }
  std::size_t at = 0;
  for (const std::string& part :
       {"mlaunch --log-dir " + (home / "logs") + " -np 2 " ACTOR_PATH " commit 40 kfs",
        "run " + run.path().filename().string() + " begins on host " + host_name(),
        std::string("mlaunch: logs of ranks are kept in "),
        std::string("attempt 0 starts with 2 ranks"), std::string("mlaunch: rank 1 of 2 failed"),
        std::string("mlaunch: starting the ranks again from step 40"),
        std::string("attempt 1 starts with 2 ranks"), std::string("mlaunch: rank 1 of 2 failed"),
        std::string("attempt 2 starts with 2 ranks"),
        std::string("the run ends with exit code 0")}) {
    while (at < texts.size() && !texts[at].starts_with(part)) ++at;
    EXPECT_LT(at, texts.size()) << part << " is not there, or not in this order";
  }
}

// Fault 37.
TEST(Mlaunch, KeepsTheReportsOfARunThatGaveUpWithoutLogs) {
  MlaunchProcess mlaunch(actors(2, {"commit", "0", "kkkk"}, {"--max-restarts", "9"}));
  EXPECT_EQ(mlaunch.wait(), 93);
  const std::string words = "mlaunch: see ";
  const std::size_t begin = mlaunch.error().find(words);
  ASSERT_NE(begin, std::string::npos) << mlaunch.error();
  const std::string path = mlaunch.error().substr(
      begin + words.size(), mlaunch.error().find('\n', begin) - begin - words.size());
  const std::filesystem::path run = std::filesystem::path(path).parent_path();
  EXPECT_TRUE(contains(read_whole_file(path, 100'000), "3 starts failed alike at step 5\n"));
  EXPECT_TRUE(contains(read_whole_file(run / "output.txt", 100'000), "[0] attempt 2 after step 5"));
  EXPECT_TRUE(std::filesystem::exists(run / "attempt_2/report.json"));
}

// Fault 37.
TEST(Mlaunch, KeepsTheReportsOfARunThatGaveUp) {
  const TestDirectory home;
  MlaunchProcess mlaunch(
      actors(2, {"commit", "0", "kkkk"}, {"--max-restarts", "9", "--log-dir", home / "logs"}));
  EXPECT_EQ(mlaunch.wait(), 93);
  for (const auto& run : std::filesystem::directory_iterator(home / "logs")) {
    const std::string text = read_whole_file(run.path().string() + "/gave_up.txt", 100'000);
    EXPECT_TRUE(text.starts_with("3 starts failed alike at step 5\n")) << text;
    EXPECT_TRUE(contains(text, "mlaunch: rank 1 of 2 failed")) << text;
    EXPECT_TRUE(contains(text, "the ranks again from the beginning: nothing was saved")) << text;
  }
}

TEST(Mlaunch, OutlivesALimitOfFileSizesOfItsLogs) {
  const TestDirectory home;
  MlaunchProcess mlaunch =
      MlaunchProcess::in_shell("ulimit -f 64; exec \"$0\" --log-dir '" + home.path() +
                               "/logs' -np 2 '" ACTOR_PATH "' lines 40000 >/dev/null");
  EXPECT_EQ(mlaunch.wait(), 0);
  EXPECT_TRUE(contains(mlaunch.error(), "the run goes on without logs in files"))
      << mlaunch.error();
  MlaunchProcess ranks_die({"sh", "-c", "kill -XFSZ $$"});
  EXPECT_EQ(ranks_die.wait(), 128 + SIGXFSZ);
}

TEST(Mlaunch, RefusesALogFolderThatCannotBeMade) {
  MlaunchProcess mlaunch(actors(2, {"meet"}, {"--log-dir", "/proc/logs"}));
  EXPECT_EQ(mlaunch.wait(), 69);
  EXPECT_TRUE(contains(mlaunch.error(), "mlaunch: --log-dir /proc/logs: the folder /proc/logs"))
      << mlaunch.error();
  EXPECT_EQ(mlaunch.output(), "");
}

TEST(Mlaunch, RefusesALogFolderWithoutRoom) {
  const TestDirectory home;
  MlaunchProcess mlaunch = MlaunchProcess::in_shell(
      "ulimit -f 0; exec \"$0\" --log-dir '" + home.path() + "/logs' -np 2 '" ACTOR_PATH "' meet");
  EXPECT_EQ(mlaunch.wait(), 74);
  EXPECT_TRUE(contains(mlaunch.error(), "/logs: writing ")) << mlaunch.error();
  EXPECT_TRUE(contains(mlaunch.error(), "make room, or name another one")) << mlaunch.error();
  EXPECT_TRUE(std::filesystem::is_empty(home.path())) << "nothing of the run is left";
}

}  // namespace
}  // namespace strata::testing
