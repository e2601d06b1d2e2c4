// Tests what ranks get from mlaunch, where their output goes, and what mlaunch refuses to start.
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

#include "tests/launcher/actors.h"

namespace strata::testing {
namespace {

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

TEST(Mlaunch, RankZeroAloneReadsStandardInput) {
  MlaunchProcess mlaunch = MlaunchProcess::in_shell("echo words | $0 -np 3 cat");
  EXPECT_EQ(mlaunch.wait(), 0);
  EXPECT_EQ(mlaunch.output(), "[0] words\n");
}

TEST(Mlaunch, OneRankPrintsWithoutPrefixAndPassesItsCode) {
  MlaunchProcess mlaunch({"sh", "-c", "printf 'no newline'; echo error >&2; exit 3"});
  EXPECT_EQ(mlaunch.wait(), 3);
  EXPECT_EQ(mlaunch.output(), "no newline");
  EXPECT_EQ(without_place(mlaunch.error()),
            "error\nmlaunch: rank 0 of 1 failed: sh exited with code 3\n");
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

TEST(Mlaunch, ARankMayCloseEitherOutputBeforeTheOther) {
  MlaunchProcess silent({"-np", "2", "sh", "-c", "exec 2>&-; sleep 0.1; printf 'half a line'"});
  EXPECT_EQ(silent.wait(), 0);
  EXPECT_TRUE(contains(silent.output(), "[1] half a line\n")) << silent.output();
  MlaunchProcess vocal({"-np", "2", "sh", "-c", "exec >&-; sleep 0.1; printf 'half a line' >&2"});
  EXPECT_EQ(vocal.wait(), 0);
  EXPECT_TRUE(contains(vocal.error(), "[1] half a line\n")) << vocal.error();
}

/// Hours of training may hang on a `| tee log` that was killed.
TEST(Mlaunch, AReaderThatGoesAwayEndsNothing) {
  const std::string ranks =
      "$0 -np 2 sh -c 'for i in 1 2 3 4 5; do echo x; sleep 0.1; done; exit 7'";
  MlaunchProcess one = MlaunchProcess::in_shell("(" + ranks + "; echo code $? >&2) | head -1");
  EXPECT_EQ(one.wait(), 0);
  EXPECT_TRUE(contains(one.error(), "nobody reads standard output any more; the ranks go on"));
  EXPECT_TRUE(contains(one.error(), "code 7\n")) << one.error();
  MlaunchProcess both =
      MlaunchProcess::in_shell("{ " + ranks + " 2>&1; echo code $? >&3; } 3>&2 | true");
  EXPECT_EQ(both.wait(), 0);
  EXPECT_TRUE(contains(both.error(), "code 7\n")) << both.error();
}

/// More output than a pipe holds is still to be written when the ranks have ended.
TEST(Mlaunch, AReaderThatIsLateGetsEverything) {
  MlaunchProcess mlaunch =
      MlaunchProcess::in_shell("$0 -np 2 '" ACTOR_PATH "' lines 2000 | (sleep 0.7; wc -l)");
  EXPECT_EQ(mlaunch.wait(), 0);
  EXPECT_EQ(mlaunch.output(), "4000\n") << mlaunch.error();
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

TEST(Mlaunch, NamesTheCommandThatAMisspeltFirstWordMeans) {
  for (const auto& [typed, meant] : {std::pair{"statsu", "status"}, std::pair{"sotp", "stop"},
                                     std::pair{"log", "logs"}, std::pair{"secrte", "secret"}}) {
    MlaunchProcess mlaunch({typed, "--json"});
    EXPECT_EQ(mlaunch.wait(), 2);
    EXPECT_TRUE(contains(mlaunch.error(), std::string("did you mean '") + meant + "'?"))
        << mlaunch.error();
  }
  MlaunchProcess after_options({"-np", "1", "statsu"});
  EXPECT_EQ(after_options.wait(), 2);
  EXPECT_FALSE(contains(after_options.error(), "'status'")) << "there it would be a program";
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
