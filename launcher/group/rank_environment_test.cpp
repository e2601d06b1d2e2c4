#include "launcher/group/rank_environment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace strata::launcher {
namespace {

TEST(RankEnvironment, ReplacesAnotherRanksVariablesAndKeepsTheRest) {
  RankIdentity identity;
  identity.placement.slots = {4};
  identity.local_rank = 2;
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
  identity.placement.slots = {2};
  identity.local_rank = 1;
  identity.master_port = 20001;
  const std::vector<std::string> environment = rank_environment(
      {"RANK=7", "MASTER_ADDR=elsewhere", "MASTER_PORT=1", "CUDA_VISIBLE_DEVICES=4,5"}, identity);
  for (const char* entry : {"RANK=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=20001",
                            "CUDA_VISIBLE_DEVICES=4,5", "GROUP_WORLD_SIZE=1"})
    EXPECT_EQ(std::count(environment.begin(), environment.end(), entry), 1) << entry;
  for (const char* entry : {"RANK=7", "MASTER_ADDR=elsewhere", "MASTER_PORT=1"})
    EXPECT_EQ(std::count(environment.begin(), environment.end(), entry), 0) << entry;
}

TEST(RankEnvironment, TellsOfItsHostAmongOthers) {
  RankIdentity identity;
  identity.placement = {.slots = {2, 3, 1}, .attempt = 4};
  identity.node = 1;
  identity.local_rank = 2;
  identity.master_address = "10.0.0.1";
  const std::vector<std::string> environment = rank_environment({}, identity);
  for (const char* entry :
       {"RANK=4", "WORLD_SIZE=6", "LOCAL_RANK=2", "LOCAL_WORLD_SIZE=3", "GROUP_RANK=1",
        "GROUP_WORLD_SIZE=3", "CROSS_RANK=0", "CROSS_SIZE=1", "MASTER_ADDR=10.0.0.1",
        "STRATA_NODE=1", "STRATA_FIRST_RANKS=0,2,5", "STRATA_ATTEMPT=4"})
    EXPECT_EQ(std::count(environment.begin(), environment.end(), entry), 1) << entry;
  identity.node = 2;
  identity.local_rank = 0;
  const std::vector<std::string> last = rank_environment({}, identity);
  for (const char* entry : {"RANK=5", "CROSS_RANK=2", "CROSS_SIZE=3"})
    EXPECT_EQ(std::count(last.begin(), last.end(), entry), 1) << entry;
}

TEST(RankEnvironment, LeavesOutWhichTaskItsStarterIs) {
  const std::vector<std::string> environment = rank_environment(
      {"OMPI_COMM_WORLD_RANK=3", "PMIX_RANK=3", "SLURM_PROCID=3", "SLURM_STEP_ID=0",
       "SLURM_NTASKS=8", "SLURM_JOB_ID=77", "PMIXED=1", "SLURM_NNODES=1", "SLURM_TASKS_PER_NODE=1",
       "SLURM_SRUN_COMM_PORT=4", "SLURM_JOB_NUM_NODES=2", "SLURM_CPU_BIND=none"},
      RankIdentity{});
  for (const char* entry : {"SLURM_JOB_ID=77", "SLURM_JOB_NUM_NODES=2", "PMIXED=1"})
    EXPECT_EQ(std::count(environment.begin(), environment.end(), entry), 1) << entry;
  for (const std::string& entry : environment)
    EXPECT_FALSE(entry.starts_with("OMPI_") || entry.starts_with("PMIX_") ||
                 (entry.starts_with("SLURM_") && !entry.starts_with("SLURM_JOB_")))
        << entry;
}

TEST(RankEnvironment, AnInterfaceThatUsersNameWins) {
  RankIdentity identity;
  identity.host_address = "10.0.0.1";
  const auto says = [&](const std::vector<std::string>& inherited, const std::string& entry) {
    const auto environment = rank_environment(inherited, identity);
    return std::ranges::find(environment, entry) != environment.end();
  };
  EXPECT_TRUE(says({"STRATA_HOST_ADDRESS=10.9.9.9"}, "STRATA_HOST_ADDRESS=10.0.0.1"));
  EXPECT_FALSE(says({"STRATA_INTERFACE=eth1"}, "STRATA_HOST_ADDRESS=10.0.0.1"));
  EXPECT_TRUE(says({"STRATA_INTERFACE=eth1"}, "STRATA_INTERFACE=eth1"));
  identity.network_interface = "eth2";
  EXPECT_TRUE(says({"STRATA_INTERFACE=eth1"}, "STRATA_INTERFACE=eth2"));
  EXPECT_FALSE(says({"STRATA_INTERFACE=eth1"}, "STRATA_INTERFACE=eth1"));
  EXPECT_FALSE(says({}, "STRATA_HOST_ADDRESS=10.0.0.1"));
}

TEST(RankEnvironment, TheWaitForALockIsTheCoordinatorsUnlessTheUserSaysOne) {
  RankIdentity identity;
  identity.lock_wait = std::chrono::seconds(120);
  const auto waits = [&](const std::vector<std::string>& inherited) {
    for (const std::string& entry : rank_environment(inherited, identity))
      if (entry.starts_with("STRATA_LOCK_WAIT=")) return entry;
    return std::string();
  };
  EXPECT_EQ(waits({}), "STRATA_LOCK_WAIT=120");
  EXPECT_EQ(waits({"STRATA_LOCK_WAIT="}), "STRATA_LOCK_WAIT=120");
  EXPECT_EQ(waits({"STRATA_LOCK_WAIT=300"}), "STRATA_LOCK_WAIT=300");
}

}  // namespace
}  // namespace strata::launcher
