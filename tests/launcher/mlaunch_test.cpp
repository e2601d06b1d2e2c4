// Tests mlaunch with real processes: eight ranks, whatever the number of cores.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <thread>

#include "core/file.h"
#include "core/host_name.h"
#include "core/json.h"
#include "core/testing/test_directory.h"
#include "tests/launcher/mlaunch_process.h"

namespace strata::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Makes the arguments of `mlaunch -np RANKS rank_actor ARGUMENTS`.
std::vector<std::string> actors(int ranks, std::vector<std::string> arguments) {
  std::vector<std::string> all{"-np", std::to_string(ranks), ACTOR_PATH};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

/// Returns mlaunch's final report: from the line that says which rank failed to the end.
std::string report_of(const MlaunchProcess& mlaunch) {
  const std::size_t begin = mlaunch.error().find("mlaunch: rank ");
  return begin == std::string::npos ? "" : mlaunch.error().substr(begin);
}

/// Returns a report without the line that says where it is kept.
std::string without_place(const std::string& report) {
  const std::size_t line = report.rfind("  report  /");
  const std::string end = "/attempt_0/report.json\n";
  const std::size_t line_end = report.find(end, line);
  EXPECT_TRUE(line != std::string::npos && line_end != std::string::npos) << report;
  return report.substr(0, line) + report.substr(std::min(line_end + end.size(), report.size()));
}

void expect_nothing_left(const MlaunchProcess& mlaunch) {
  for (const std::string& process : mlaunch.living()) ADD_FAILURE() << "still alive: " << process;
}

TEST(Mlaunch, EightRanksMeetAndEndWithZero) {
  MlaunchProcess mlaunch(actors(8, {"meet"}));
  EXPECT_EQ(mlaunch.wait(), 0);
  EXPECT_EQ(mlaunch.error(), "");
  for (int rank = 0; rank < 8; ++rank)
    EXPECT_TRUE(contains(mlaunch.output(), "[" + std::to_string(rank) + "] rank " +
                                               std::to_string(rank) + " of 8 on "))
        << mlaunch.output();
  expect_nothing_left(mlaunch);
}

TEST(Mlaunch, AFailedRankIsReportedLastAndItsCodeReturned) {
  for (const int code : {1, 78}) {
    MlaunchProcess mlaunch(actors(8, {"fail", "5", std::to_string(code)}));
    EXPECT_EQ(mlaunch.wait(), code);
    const std::string report = report_of(mlaunch);
    EXPECT_TRUE(contains(report, "rank 5 of 8 failed")) << mlaunch.error();
    EXPECT_TRUE(contains(report, "exited with code " + std::to_string(code)));
    EXPECT_TRUE(contains(report,
                         "step 12, backward, instruction 340 'layer3.attention_backward', "
                         "in collective 1 'reduce_scatter layer4'"));
    EXPECT_TRUE(contains(report, "error   the flux of rank 5 is wrong"));
    EXPECT_EQ(mlaunch.error(), report) << "something was printed before or after it";
    expect_nothing_left(mlaunch);
  }
}

// Fault 1.
TEST(Mlaunch, DeathBySignalNamesRankSignalStepPhaseAndInstruction) {
  for (const int number : {SIGKILL, SIGSEGV, SIGABRT}) {
    MlaunchProcess mlaunch(actors(8, {"signal", "3", std::to_string(number)}));
    EXPECT_EQ(mlaunch.wait(), 128 + number);
    const std::string report = report_of(mlaunch);
    EXPECT_TRUE(contains(report, "rank 3 of 8 failed")) << mlaunch.error();
    EXPECT_TRUE(contains(report, "killed by signal " + std::to_string(number)));
    EXPECT_TRUE(contains(report, "step 12, backward, instruction 340"));
    EXPECT_TRUE(contains(report, "others  rank 0-2, 4-7: step 12"));
    EXPECT_TRUE(contains(report, "advice"));
    expect_nothing_left(mlaunch);
  }
}

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
  EXPECT_FALSE(contains(nothing_saved.error(), "again")) << nothing_saved.error();
  std::vector<std::string> never = actors(2, {"commit", "40", "ks"});
  never.insert(never.begin(), {"--max-restarts", "0"});
  MlaunchProcess told_not_to(never);
  EXPECT_EQ(told_not_to.wait(), 128 + SIGKILL);
}

// Fault 7.
TEST(Mlaunch, NamesARankThatIsStoppedAndEndsTheRun) {
  const auto begin = std::chrono::steady_clock::now();
  MlaunchProcess mlaunch(actors(2, {"stop", "1"}));
  EXPECT_TRUE(mlaunch.wait_for_error("has been stopped")) << "within 8 s";
  EXPECT_EQ(mlaunch.wait(), 75);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(14));
  EXPECT_TRUE(contains(mlaunch.error(),
                       "mlaunch: rank 1 has been stopped or frozen for 5 s; it is "
                       "at step 12, backward"))
      << mlaunch.error();
  EXPECT_TRUE(contains(mlaunch.error(), "the ranks are ended now")) << mlaunch.error();
  expect_nothing_left(mlaunch);
}

// Fault 8.
TEST(Mlaunch, NamesARankThatDoesNotComeToTheCollectiveOfOthers) {
  constexpr seconds kLimit(8);  // over 5 s: the longest pause between two looks is about 1 s
  std::vector<std::string> arguments = actors(3, {"absent", "1"});
  arguments.insert(arguments.begin(), {"--hang-timeout", std::to_string(kLimit.count())});
  MlaunchProcess mlaunch(arguments);
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 3));
  EXPECT_TRUE(mlaunch.wait_for_error("mlaunch: rank 1 has not come to", kLimit + seconds(4)));
  EXPECT_EQ(mlaunch.wait(), 75);
  EXPECT_TRUE(contains(mlaunch.error(),
                       "mlaunch: rank 1 has not come to collective 2 'gather layer4', in which 2 "
                       "ranks wait; nothing got done for "))
      << mlaunch.error();
  expect_nothing_left(mlaunch);
}

TEST(Mlaunch, WaitsForAStoppedRankIfToldTo) {
  std::vector<std::string> arguments = actors(2, {"stop", "1"});
  arguments.insert(arguments.begin(), {"--hang-timeout", "0"});
  MlaunchProcess mlaunch(arguments);
  EXPECT_FALSE(mlaunch.wait_for_error("rank"));
  EXPECT_EQ(mlaunch.error(), "");
}

TEST(Mlaunch, KeepsLogsAndReportsOfEveryAttempt) {
  const TestDirectory home;
  std::vector<std::string> arguments = actors(2, {"commit", "40", "kfs"});
  arguments.insert(arguments.begin(), {"--log-dir", home / "logs"});
  MlaunchProcess mlaunch(arguments);
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
  std::vector<std::string> arguments = actors(2, {"commit", "40", "kfs"});
  arguments.insert(arguments.begin(), {"--log-dir", home / "logs"});
  MlaunchProcess mlaunch(arguments);
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

// Fault 37.
TEST(Mlaunch, KeepsTheReportsOfARunThatGaveUpWithoutLogs) {
  std::vector<std::string> arguments = actors(2, {"commit", "0", "kkkk"});
  arguments.insert(arguments.begin(), {"--max-restarts", "9"});
  MlaunchProcess mlaunch(arguments);
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
  std::vector<std::string> arguments = actors(2, {"commit", "0", "kkkk"});
  arguments.insert(arguments.begin(), {"--max-restarts", "9", "--log-dir", home / "logs"});
  MlaunchProcess mlaunch(arguments);
  EXPECT_EQ(mlaunch.wait(), 93);
  for (const auto& run : std::filesystem::directory_iterator(home / "logs")) {
    const std::string text = read_whole_file(run.path().string() + "/gave_up.txt", 100'000);
    EXPECT_TRUE(text.starts_with("3 starts failed alike at step 5\n")) << text;
    EXPECT_TRUE(contains(text, "mlaunch: rank 1 of 2 failed")) << text;
    EXPECT_TRUE(contains(text, "the ranks again from the beginning: nothing was saved")) << text;
  }
}

TEST(Mlaunch, RefusesALogFolderThatCannotBeMade) {
  std::vector<std::string> arguments = actors(2, {"meet"});
  arguments.insert(arguments.begin(), {"--log-dir", "/proc/logs"});
  MlaunchProcess mlaunch(arguments);
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

// Fault 37.
TEST(Mlaunch, GivesUpARunThatFailsAlike) {
  MlaunchProcess mlaunch([] {
    std::vector<std::string> arguments = actors(2, {"commit", "0", "kkkk"});
    arguments.insert(arguments.begin(), {"--max-restarts", "9"});
    return arguments;
  }());
  EXPECT_EQ(mlaunch.wait(), 93);
  EXPECT_TRUE(contains(mlaunch.error(), "mlaunch: 3 starts failed alike at step 5"))
      << mlaunch.error();
  EXPECT_TRUE(contains(mlaunch.error(), "from the beginning: nothing has been saved"));
}

TEST(Mlaunch, RanksThatIgnoreTermAreKilled) {
  MlaunchProcess mlaunch(actors(8, {"stubborn", "fail"}));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(mlaunch.wait(), 70);
  EXPECT_GE(std::chrono::steady_clock::now() - start, seconds(4));
  EXPECT_TRUE(contains(report_of(mlaunch), "rank 0 of 8 failed"));
  expect_nothing_left(mlaunch);
}

// Fault 1.
TEST(Mlaunch, APeerWaitingAtTheRendezvousIsWokenByADeath) {
  MlaunchProcess mlaunch(actors(4, {"abandon"}));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(mlaunch.wait(), 137);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(4)) << "it needed SIGKILL";
  EXPECT_TRUE(contains(report_of(mlaunch), "rank 1 of 4 failed"));
  expect_nothing_left(mlaunch);
}

TEST(Mlaunch, TheCauseIsReportedNotTheRankThatBlamesIt) {
  MlaunchProcess mlaunch(actors(2, {"blame"}));
  EXPECT_EQ(mlaunch.wait(), 65);
  EXPECT_TRUE(contains(report_of(mlaunch), "rank 1 of 2 failed"));
  EXPECT_TRUE(contains(report_of(mlaunch), "model.safetensors: tensor w is cut off"));
}

TEST(Mlaunch, ErrorsOfOtherRanksStandBeforeTheFirstOne) {
  MlaunchProcess mlaunch(actors(4, {"quarrel"}));
  EXPECT_EQ(mlaunch.wait(), 65);
  EXPECT_EQ(without_place(mlaunch.error()),
            std::string("mlaunch: rank 1 of 4 failed: ") + ACTOR_PATH +
                " exited with code 65 (bad stored data)\n"
                "  also    rank 0: /data is not mounted\n"
                "          ranks 2-3 failed likewise\n"
                "  error   model.safetensors: tensor w is cut off\n"
                "  advice  check or fetch again the file that the error names\n");
}

TEST(Mlaunch, CtrlCEndsWillingRanksAtOnce) {
  MlaunchProcess mlaunch({"--grace", "12", "-np", "8", "sh", "-c", "echo ready; exec sleep 60"});
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 8));
  mlaunch.send(SIGINT);
  EXPECT_EQ(mlaunch.wait(seconds(5)), 130);
  EXPECT_EQ(mlaunch.error_lines().back(), "mlaunch: ended by Ctrl-C");
  expect_nothing_left(mlaunch);
}

TEST(Mlaunch, CtrlCEndsStubbornRanksAfterTheGrace) {
  std::vector<std::string> arguments = actors(8, {"stubborn"});
  arguments.insert(arguments.begin(), {"--grace", "1"});
  MlaunchProcess mlaunch(arguments);
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 8));
  mlaunch.send(SIGINT);
  EXPECT_EQ(mlaunch.wait(seconds(4)), 130);
  expect_nothing_left(mlaunch);
}

TEST(Mlaunch, ASecondCtrlCKillsAtOnce) {
  MlaunchProcess mlaunch(actors(8, {"stubborn"}));
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 8));
  mlaunch.send(SIGINT);
  ASSERT_TRUE(mlaunch.wait_for_error("Ctrl-C"));
  mlaunch.send(SIGINT);
  EXPECT_EQ(mlaunch.wait(seconds(2)), 130);
  expect_nothing_left(mlaunch);
}

TEST(Mlaunch, TermEndsTheRun) {
  MlaunchProcess mlaunch({"--grace", "12", "-np", "4", "sh", "-c", "echo ready; exec sleep 60"});
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 4));
  mlaunch.send(SIGTERM);
  EXPECT_EQ(mlaunch.wait(seconds(5)), 143);
  expect_nothing_left(mlaunch);
}

// Fault 36.
TEST(Mlaunch, TermAndUsr1LetRanksSaveAndStop) {
  for (const int number : {SIGTERM, SIGUSR1}) {
    MlaunchProcess mlaunch(actors(4, {"save"}));
    ASSERT_TRUE(mlaunch.wait_for_output("ready", 4));
    mlaunch.send(number);
    EXPECT_EQ(mlaunch.wait(), 75);
    EXPECT_TRUE(
        mlaunch.wait_for_output("saved after signal " + std::to_string(number), 4, milliseconds(0)))
        << mlaunch.output();
    EXPECT_EQ(mlaunch.error_lines().back(), number == SIGTERM
                                                ? "mlaunch: stopped on request (SIGTERM)"
                                                : "mlaunch: stopped on request");
    expect_nothing_left(mlaunch);
  }
}

// Fault 36.
TEST(Mlaunch, RanksThatDoNotStopInTimeAreKilled) {
  std::vector<std::string> arguments = actors(4, {"stubborn"});
  arguments.insert(arguments.begin(), {"--grace", "1"});
  MlaunchProcess mlaunch(arguments);
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 4));
  mlaunch.send(SIGTERM);
  EXPECT_EQ(mlaunch.wait(), 143);
  EXPECT_TRUE(contains(mlaunch.error(), "have 1 s to stop by themselves"));
  EXPECT_EQ(mlaunch.error_lines().back(), "mlaunch: ended by SIGTERM");
  expect_nothing_left(mlaunch);
}

// Fault 36.
TEST(Mlaunch, ASecondTermDoesNotWaitForTheGrace) {
  MlaunchProcess mlaunch(actors(4, {"stubborn"}));
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 4));
  mlaunch.send(SIGTERM);
  ASSERT_TRUE(mlaunch.wait_for_error("have 30 s to stop by themselves"));
  mlaunch.send(SIGTERM);
  EXPECT_EQ(mlaunch.wait(), 143);  // well before the 30 s
  expect_nothing_left(mlaunch);
}

// Fault 12.
TEST(Mlaunch, RanksDieWithAKilledMlaunch) {
  MlaunchProcess mlaunch(actors(8, {"stubborn"}));
  ASSERT_TRUE(mlaunch.wait_for_output("ready", 8));
  EXPECT_GE(mlaunch.living().size(), 9u);
  mlaunch.send(SIGKILL);
  EXPECT_EQ(mlaunch.wait(), 1000 + SIGKILL);
  EXPECT_TRUE(mlaunch.all_gone(seconds(5)));
}

TEST(Mlaunch, NoGrandchildSurvives) {
  for (const int code : {0, 70}) {
    MlaunchProcess mlaunch(actors(4, {"grandchildren", "2", std::to_string(code)}));
    EXPECT_EQ(mlaunch.wait(), code) << mlaunch.error();
    expect_nothing_left(mlaunch);
  }
}

TEST(Mlaunch, OneHundredThousandLinesOfEightRanksStayWhole) {
  constexpr int kLines = 12'500;
  MlaunchProcess mlaunch(actors(8, {"lines", std::to_string(kLines)}));
  EXPECT_EQ(mlaunch.wait(), 0);
  int next[8] = {};
  std::istringstream stream(mlaunch.output());
  for (std::string line; std::getline(stream, line);) {
    ASSERT_GE(line.size(), 3u);
    const int rank = line[1] - '0';
    ASSERT_TRUE(rank >= 0 && rank < 8) << line;
    const int number = next[rank]++;
    ASSERT_EQ(line, "[" + std::to_string(rank) + "] rank " + std::to_string(rank) + " line " +
                        std::to_string(number) + " " +
                        std::string(static_cast<std::size_t>(number % 97), 'x') + ".");
  }
  for (const int count : next) EXPECT_EQ(count, kLines);
}

TEST(Mlaunch, StandardErrorOfTheFailedRankIsRepeatedLast) {
  MlaunchProcess mlaunch({"-np", "3", "sh", "-c",
                          "echo only $RANK >&2; test $RANK = 1 || exec sleep 60; "
                          "sleep 0.3; echo no luck >&2; exit 9"});
  EXPECT_EQ(mlaunch.wait(), 9);
  EXPECT_TRUE(contains(mlaunch.error(), "[1] no luck\n"));
  EXPECT_EQ(without_place(report_of(mlaunch)),
            "mlaunch: rank 1 of 3 failed: sh exited with code 9\n"
            "  error   only 1\n"
            "          no luck\n");
}

TEST(Mlaunch, ARankMayCloseEitherOutputBeforeTheOther) {
  MlaunchProcess silent({"-np", "2", "sh", "-c", "exec 2>&-; sleep 0.1; printf 'half a line'"});
  EXPECT_EQ(silent.wait(), 0);
  EXPECT_TRUE(contains(silent.output(), "[1] half a line\n")) << silent.output();
  MlaunchProcess vocal({"-np", "2", "sh", "-c", "exec >&-; sleep 0.1; printf 'half a line' >&2"});
  EXPECT_EQ(vocal.wait(), 0);
  EXPECT_TRUE(contains(vocal.error(), "[1] half a line\n")) << vocal.error();
}

TEST(Mlaunch, GivesRanksTheirIdentity) {
  MlaunchProcess mlaunch(
      {"-np", "2", "--grace", "7", "--master_port", "4321", "sh", "-c",
       "echo $STRATA_RANK/$STRATA_WORLD $STRATA_LOCAL_RANK/$STRATA_LOCAL_WORLD $RANK/$WORLD_SIZE "
       "$LOCAL_RANK/$LOCAL_WORLD_SIZE $MASTER_ADDR:$MASTER_PORT $STRATA_ATTEMPT "
       "$STRATA_GRACE"});
  EXPECT_EQ(mlaunch.wait(), 0);
  for (const char* rank : {"0", "1"}) {
    const std::string r = rank;
    EXPECT_TRUE(contains(mlaunch.output(), "[" + r + "] " + r + "/2 " + r + "/2 " + r + "/2 " + r +
                                               "/2 127.0.0.1:4321 0 7\n"))
        << mlaunch.output();
  }
}

TEST(Mlaunch, RanksThatUseTorchFindAPlaceToMeet) {
  MlaunchProcess mlaunch(
      {"-np", "2", "--no-prefix", "sh", "-c",
       "echo $MASTER_ADDR:$MASTER_PORT $LOCAL_WORLD_SIZE $GROUP_RANK/$GROUP_WORLD_SIZE"});
  EXPECT_EQ(mlaunch.wait(), 0);
  std::istringstream lines(mlaunch.output());
  std::string first, second;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_EQ(first, second);
  EXPECT_TRUE(contains(first, "127.0.0.1:") && contains(first, " 2 0/1")) << first;
  EXPECT_GT(std::atoi(first.substr(first.find(':') + 1).c_str()), 1024) << first;
}

TEST(Mlaunch, RanksSeeTheDevicesThatAreIncluded) {
  const std::string show = " sh -c 'echo see $CUDA_VISIBLE_DEVICES'";
  for (const auto& [options, expected] : std::vector<std::pair<std::string, std::string>>{
           {"CUDA_VISIBLE_DEVICES=1,2,3 $0 --include localhost:2,3", "[1] see 2,3\n"},
           {"CUDA_VISIBLE_DEVICES=1,2,3 $0 --exclude localhost:2", "[1] see 1,3\n"},
           {"CUDA_VISIBLE_DEVICES=1,2,3 $0 --num_gpus 2", "[1] see 1,2,3\n"},
           {"unset CUDA_VISIBLE_DEVICES; $0 --num_gpus 2", "[1] see 0,1\n"},
           {"unset CUDA_VISIBLE_DEVICES; $0 -np 2", "[1] see\n"}}) {
    MlaunchProcess mlaunch = MlaunchProcess::in_shell(options + show);
    EXPECT_EQ(mlaunch.wait(), 0) << options;
    EXPECT_TRUE(contains(mlaunch.output(), expected)) << options << "\n" << mlaunch.output();
  }
}

TEST(Mlaunch, IsNoRankOfTorchrunButMindsNoWorldSize) {
  MlaunchProcess rank = MlaunchProcess::in_shell(
      "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_PORT=4321 $0 -np 2 true");
  EXPECT_EQ(rank.wait(), 2);
  EXPECT_TRUE(contains(rank.error(), "started as rank 1 of 2 by torchrun")) << rank.error();
  MlaunchProcess script =
      MlaunchProcess::in_shell("WORLD_SIZE=8 $0 -np 2 sh -c 'echo $WORLD_SIZE'");
  EXPECT_EQ(script.wait(), 0);
  EXPECT_TRUE(contains(script.output(), "[1] 2\n")) << script.output();
}

TEST(Mlaunch, OneRankPrintsWithoutPrefixAndPassesItsCode) {
  MlaunchProcess mlaunch({"sh", "-c", "printf 'no newline'; echo error >&2; exit 3"});
  EXPECT_EQ(mlaunch.wait(), 3);
  EXPECT_EQ(mlaunch.output(), "no newline");
  EXPECT_EQ(without_place(mlaunch.error()),
            "error\nmlaunch: rank 0 of 1 failed: sh exited with code 3\n");
}

TEST(Mlaunch, RefusesUnknownProgramsAndOptionsWithTwo) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"-np", "2", "no_such_program"},
        {"--hostfile", "h", "sh"},
        {"-np", "0", "sh"},
        {}}) {
    MlaunchProcess mlaunch(arguments);
    EXPECT_EQ(mlaunch.wait(), 2);
    EXPECT_EQ(mlaunch.output(), "");
    EXPECT_EQ(mlaunch.error().rfind("mlaunch: ", 0), 0u);
    EXPECT_EQ(mlaunch.error_lines().size(), 1u);
  }
}

TEST(Mlaunch, RefusesToBeARankItself) {
  MlaunchProcess mlaunch({"-np", "2", MLAUNCH_PATH, "sh", "-c", "true"});
  EXPECT_EQ(mlaunch.wait(), 2);
  EXPECT_TRUE(contains(mlaunch.error(), "mlaunch was itself started as rank"));
}

TEST(Mlaunch, AProgramThatCannotBeExecutedIsAHostError) {
  MlaunchProcess mlaunch({"-np", "2", NOT_A_PROGRAM_PATH});
  EXPECT_EQ(mlaunch.wait(), 69);
  EXPECT_TRUE(contains(report_of(mlaunch), "could not be started")) << mlaunch.error();
}

TEST(Mlaunch, NonsenseAtTheRendezvousCostsThatRankItsConnection) {
  MlaunchProcess mlaunch(actors(1, {"garbage"}));
  EXPECT_EQ(mlaunch.wait(), 75);
  EXPECT_TRUE(contains(mlaunch.error(), "disconnected rank 0 from the rendezvous"));
}

TEST(Mlaunch, AReaderThatGoesAwayEndsTheRun) {
  MlaunchProcess mlaunch =
      MlaunchProcess::in_shell("$0 -np 2 sh -c 'while sleep 0.01; do echo x; done' | head -3");
  EXPECT_EQ(mlaunch.wait(), 0);
  EXPECT_TRUE(contains(mlaunch.error(), "SIGPIPE"));
  EXPECT_TRUE(mlaunch.all_gone(seconds(2)));
}

/// More output than a pipe holds is still to be written when the ranks have ended.
TEST(Mlaunch, AReaderThatIsLateGetsEverything) {
  MlaunchProcess mlaunch =
      MlaunchProcess::in_shell("$0 -np 2 '" ACTOR_PATH "' lines 2000 | (sleep 0.7; wc -l)");
  EXPECT_EQ(mlaunch.wait(), 0);
  EXPECT_EQ(mlaunch.output(), "4000\n") << mlaunch.error();
}

TEST(Mlaunch, SuspendingStopsTheRanksToo) {
  MlaunchProcess mlaunch({"-np", "2", "sh", "-c", "while sleep 0.01; do echo tick; done"});
  ASSERT_TRUE(mlaunch.wait_for_output("tick", 4));
  mlaunch.send(SIGTSTP);
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_FALSE(mlaunch.wait_for_output("tick", 1'000'000, milliseconds(100)));
  const std::size_t printed = mlaunch.output().size();
  EXPECT_FALSE(mlaunch.wait_for_output("tick", 1'000'000, milliseconds(200)));
  EXPECT_EQ(mlaunch.output().size(), printed);
  mlaunch.send(SIGCONT);
  EXPECT_FALSE(mlaunch.wait_for_output("tick", 1'000'000, milliseconds(200)));
  EXPECT_GT(mlaunch.output().size(), printed);
  mlaunch.send(SIGTERM);
  EXPECT_EQ(mlaunch.wait(seconds(3)), 143);
}

TEST(Mlaunch, LeavesProcessesAloneThatItInherited) {
  MlaunchProcess mlaunch = MlaunchProcess::in_shell(
      "sleep 5 > /dev/null 2>&1 & exec $0 -np 2 sh -c 'setsid sleep 5 & echo done'");
  EXPECT_EQ(mlaunch.wait(), 0);
  const std::vector<std::string> living = mlaunch.living();
  ASSERT_EQ(living.size(), 1u);
  EXPECT_TRUE(contains(living[0], "sleep"));
}

TEST(Mlaunch, KeepsIgnoringWhatItsStarterIgnores) {
  MlaunchProcess mlaunch = MlaunchProcess::in_shell(
      "trap '' HUP; $0 -np 2 sh -c 'echo ready; sleep 0.5' & "
      "sleep 0.25; kill -HUP $!; wait $!");
  EXPECT_EQ(mlaunch.wait(), 0);
  EXPECT_EQ(mlaunch.error(), "");
}

TEST(Mlaunch, RankZeroAloneReadsStandardInput) {
  MlaunchProcess mlaunch = MlaunchProcess::in_shell("echo words | $0 -np 3 cat");
  EXPECT_EQ(mlaunch.wait(), 0);
  EXPECT_EQ(mlaunch.output(), "[0] words\n");
}

TEST(Mlaunch, HandsOverToMpirun) {
  MlaunchProcess mlaunch({"--launcher", "mpi", "-np", "3", "--no-prefix", "sh", "-c",
                          "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE; exit 78"});
  const int code = mlaunch.wait();
  if (code == 69) GTEST_SKIP() << mlaunch.error();  // no mpirun
  EXPECT_EQ(code, 78);
  EXPECT_TRUE(contains(mlaunch.output(), "of 3")) << mlaunch.output();
}

}  // namespace
}  // namespace strata::testing
