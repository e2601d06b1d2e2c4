#include "launcher/start/agent_command.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace strata::launcher {
namespace {

using Words = std::vector<std::string>;

TEST(AgentCommand, ItSaysWhichHostOfTheRunThatIs) {
  Options options;
  options.hosts = {
      .count = 3, .least = 2, .node = 0, .address = "10.0.0.1", .port = 29500, .secret = "s"};
  options.hosts.worlds = {4, 8};
  options.hosts.rejoin = std::chrono::seconds(9);
  options.hosts.join = std::chrono::seconds(1800);
  options.restarts.most_restarts = 5;
  options.hang_timeout = std::chrono::seconds(40);
  options.grace = std::chrono::seconds(7);
  options.prefix = false;
  options.log_directory = "logs";
  options.command = {"train", "--zero", "3"};
  EXPECT_EQ(agent_arguments(options, {2, 4}), (Words{"--agent",
                                                     "--nnodes",
                                                     "2:3",
                                                     "--node-rank",
                                                     "2",
                                                     "--master-addr",
                                                     "10.0.0.1",
                                                     "--master-port",
                                                     "29500",
                                                     "--run-secret",
                                                     "-",
                                                     "-np",
                                                     "4",
                                                     "--grace",
                                                     "7",
                                                     "--rejoin",
                                                     "9",
                                                     "--rdzv-conf",
                                                     "join_timeout=1800",
                                                     "--max-restarts",
                                                     "5",
                                                     "--hang-timeout",
                                                     "40",
                                                     "--elastic",
                                                     "4:8",
                                                     "--no-prefix",
                                                     "--log-dir",
                                                     "logs",
                                                     "--",
                                                     "train",
                                                     "--zero",
                                                     "3"}));
}

TEST(AgentCommand, WhatIsNotGivenIsNotSaid) {
  Options options;
  options.hosts.count = options.hosts.least = 3;
  const Words arguments = agent_arguments(options, {1, 1});
  EXPECT_EQ(arguments[2], "3");
  EXPECT_EQ(std::ranges::find(arguments, "--elastic"), arguments.end());
}

TEST(AgentCommand, TheOtherMlaunchTakesItAsItWasMeant) {
  Options options;
  options.hosts = {.count = 3, .least = 3, .address = "10.0.0.1", .port = 29500};
  options.hosts.join = std::chrono::seconds(1800);
  options.hosts.rejoin = std::chrono::seconds(9);
  options.command = {"train", "--zero", "3"};
  const Options there = parse_options(agent_arguments(options, {2, 4}));
  EXPECT_EQ(there.hosts.join, std::chrono::seconds(1800));
  EXPECT_EQ(there.hosts.rejoin, std::chrono::seconds(9));
  EXPECT_EQ(there.hosts.node, 2);
  EXPECT_EQ(there.ranks, 4);
  EXPECT_EQ(there.command, options.command);
  EXPECT_EQ(there.notes, Words{});
}

TEST(AgentCommand, ItSaysWhichGpusAndWhichNetworkItsRanksUse) {
  Options options;
  options.hosts = {.count = 2, .address = "10.0.0.1", .port = 29500};
  options.network_interface = "eth1";
  options.command = {"train"};
  const Words words = agent_arguments(options, {1, 2, {"0", "2"}});
  EXPECT_EQ(Words(words.end() - 6, words.end()),
            (Words{"--include", "localhost:0,2", "--interface", "eth1", "--", "train"}));
}

TEST(AgentCommand, NoWordIsMoreThanAWordToTheShellThere) {
  EXPECT_EQ(ssh_command({"user@b", "/home/a b", "/opt/mlaunch", {"it's", "$(reboot)", ""}}),
            (Words{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-o",
                   "ControlMaster=no", "-o", "ControlPath=none", "--", "user@b",
                   "echo strata: ssh is there && cd '/home/a b' && exec '/opt/mlaunch' "
                   "'it'\\''s' '$(reboot)' ''"}));
}

TEST(AgentCommand, SrunStartsAStepBesideAllOthersOfTheJob) {
  EXPECT_EQ(
      srun_command({"n2", "/home/a b", "/opt/mlaunch", {"--agent", "it's"}}, {"--quiet"}),
      (Words{"srun", "--overlap", "--nodes=1", "--ntasks=1", "--nodelist", "n2", "--cpu-bind=none",
             "--mpi=none", "--chdir", "/home/a b", "--quiet", "/opt/mlaunch", "--agent", "it's"}));
}

TEST(AgentCommand, SrunHearsOfTheJobAndNotOfItsTasks) {
  EXPECT_EQ(
      srun_environment({"HOME=/h", "SLURM_JOB_ID=7", "SLURM_CONF=/c", "SLURM_NTASKS=8",
                        "SLURM_GPUS_PER_TASK=1", "SRUN_CPUS_PER_TASK=2", "SLURM_JOB_NUM_NODES=2",
                        "SLURM_STEP_ID=0", "SLURM_RESTART_COUNT=1", "SLURMD_NODENAME=n1"}),
      (Words{"HOME=/h", "SLURM_JOB_ID=7", "SLURM_CONF=/c", "SLURM_JOB_NUM_NODES=2",
             "SLURM_RESTART_COUNT=1", "SLURMD_NODENAME=n1"}));
}

TEST(AgentCommand, MpirunStartsOneProcess) {
  EXPECT_EQ(
      mpirun_command({"n2", "/f", "/opt/mlaunch", {"--agent"}}, {"--mca", "plm", "rsh"}, true),
      (Words{"mpirun", "-np", "1", "--host", "n2", "--bind-to", "none", "--quiet", "--wdir", "/f",
             "--allow-run-as-root", "--mca", "plm", "rsh", "/opt/mlaunch", "--agent"}));
}

}  // namespace
}  // namespace strata::launcher
