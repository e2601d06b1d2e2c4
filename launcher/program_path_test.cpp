#include "launcher/program_path.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "launcher/rank_environment.h"

namespace strata::launcher {
namespace {

namespace fs = std::filesystem;

class ProgramPath : public ::testing::Test {
 protected:
  ProgramPath() {
    fs::create_directories(root_ / "own");
    fs::create_directories(root_ / "path");
    add(root_ / "own" / "train", true);
    add(root_ / "path" / "train", true);
    add(root_ / "path" / "tool", true);
    add(root_ / "path" / "script.py", false);
  }
  ~ProgramPath() override { fs::remove_all(root_); }

  static void add(const fs::path& path, bool executable) {
    std::ofstream(path) << "#!/bin/sh\n";
    if (executable) fs::permissions(path, fs::perms::owner_all);
  }
  std::string find(const std::string& name) const {
    return find_program(name, root_ / "own", "/nowhere:" + (root_ / "path").string());
  }
  std::string refusal(const std::string& name) const {
    try {
      find(name);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  }

  const fs::path root_ =
      fs::path(::testing::TempDir()) / ("program_path_" + std::to_string(::getpid()));
};

TEST_F(ProgramPath, LooksNextToMlaunchFirstThenInPath) {
  EXPECT_EQ(find("train"), root_ / "own" / "train");
  EXPECT_EQ(find("tool"), root_ / "path" / "tool");
  EXPECT_EQ(find(root_ / "path" / "train"), root_ / "path" / "train");
}

TEST_F(ProgramPath, NamesTheNearestProgram) {
  for (const char* name : {"trian", "trai"})
    EXPECT_NE(refusal(name).find("program " + std::string(name)), std::string::npos) << name;
  for (const char* name : {"trian", "trai"})
    EXPECT_NE(refusal(name).find("did you mean 'train'?"), std::string::npos) << name;
  EXPECT_NE(refusal("generate").find("there are: train"), std::string::npos);
}

TEST_F(ProgramPath, SaysWhyAPathIsNoProgram) {
  EXPECT_NE(refusal(root_ / "path" / "none").find("does not exist"), std::string::npos);
  EXPECT_NE(refusal(root_ / "path").find("is a directory"), std::string::npos);
  EXPECT_NE(refusal(root_ / "path" / "script.py").find("python3"), std::string::npos);
}

TEST(RankEnvironment, ReplacesAnotherRanksVariablesAndKeepsTheRest) {
  RankIdentity identity;
  identity.rank = 2;
  identity.world = 4;
  identity.run_id = "abc";
  identity.error_on_terminal = true;
  const std::vector<std::string> environment = rank_environment(
      {"HOME=/h", "STRATA_RANK=9", "STRATA_TERMINAL=stdout", "RANKS=7", "ODD"}, identity);
  const auto count = [&environment](const std::string& entry) {
    return std::count(environment.begin(), environment.end(), entry);
  };
  EXPECT_EQ(count("HOME=/h"), 1);
  EXPECT_EQ(count("RANKS=7"), 1);
  EXPECT_EQ(count("ODD"), 1);
  EXPECT_EQ(count("STRATA_RANK=9"), 0);
  for (const char* entry : {"STRATA_RANK=2", "STRATA_WORLD=4", "STRATA_RUN_ID=abc", "RANK=2",
                            "WORLD_SIZE=4", "LOCAL_RANK=2", "STRATA_TERMINAL=stderr"})
    EXPECT_EQ(count(entry), 1) << entry;
}

TEST(RankEnvironment, OnlyRanksOnATerminalHearOfIt) {
  for (const std::string& entry : rank_environment({"STRATA_TERMINAL=stdout"}, RankIdentity{})) {
    EXPECT_EQ(entry.find("STRATA_TERMINAL"), std::string::npos);
  }
}

TEST(RankEnvironment, WhatDescribedAnotherRankIsGone) {
  RankIdentity identity;
  identity.rank = 1;
  identity.world = 2;
  identity.master_port = 20001;
  const std::vector<std::string> environment = rank_environment(
      {"RANK=7", "MASTER_ADDR=elsewhere", "MASTER_PORT=1", "CUDA_VISIBLE_DEVICES=4,5"}, identity);
  for (const char* entry : {"RANK=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=20001",
                            "CUDA_VISIBLE_DEVICES=4,5", "GROUP_WORLD_SIZE=1"})
    EXPECT_EQ(std::count(environment.begin(), environment.end(), entry), 1) << entry;
  for (const char* entry : {"RANK=7", "MASTER_ADDR=elsewhere", "MASTER_PORT=1"})
    EXPECT_EQ(std::count(environment.begin(), environment.end(), entry), 0) << entry;
}

}  // namespace
}  // namespace strata::launcher
