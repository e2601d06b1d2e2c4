#include "launcher/command/scheduler_hosts.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "launcher/command/slurm_job.h"

namespace strata::launcher {
namespace {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

/// A batch script on the first of three nodes.
Surroundings batch_script(const Variables& more = {}) {
  Surroundings surroundings;
  surroundings.variables = {{"SLURM_JOB_ID", "12"},   {"SLURM_JOB_NUM_NODES", "3"},
                            {"SLURM_NNODES", "3"},    {"SLURM_JOB_NODELIST", "n[1-3]"},
                            {"SLURM_PROCID", "0"},    {"SLURM_TASKS_PER_NODE", "1(x3)"},
                            {"SLURMD_NODENAME", "n1"}};
  for (const auto& [name, value] : more) surroundings.variables[name] = value;
  surroundings.slurm_host_names = [](const std::string& list) {
    return list == "n[1-3]" ? Words{"n1", "n2", "n3"} : Words{list};
  };
  return surroundings;
}

Surroundings kubeflow(const Variables& more = {}) {
  Surroundings surroundings;
  surroundings.variables = {{"PET_NNODES", "2"},
                            {"PET_NPROC_PER_NODE", "4"},
                            {"PET_NODE_RANK", "1"},
                            {"PET_MASTER_ADDR", "job-node-0-0.job"},
                            {"PET_MASTER_PORT", "29400"}};
  for (const auto& [name, value] : more) surroundings.variables[name] = value;
  return surroundings;
}

std::vector<int> slots(const Options& options) {
  std::vector<int> slots;
  for (const ListedHost& host : options.hosts.listed) slots.push_back(host.slots);
  return slots;
}

template <typename Kind>
std::string refusal(const Words& arguments, const Surroundings& surroundings) {
  try {
    parse_options(arguments, surroundings);
  } catch (const Kind& error) {
    return error.what();
  }
  return "";
}

TEST(SlurmHosts, ABatchScriptOfSeveralNodesTakesAllOfThem) {
  const Options options = parse_options({"-np", "8", "train"}, batch_script());
  EXPECT_EQ(options.launcher, Options::Launcher::slurm);
  EXPECT_EQ(options.hosts.listed, (std::vector<ListedHost>{{"n1", 8}, {"n2", 8}, {"n3", 8}}));
  EXPECT_EQ(options.hosts.node, 0) << "Slurm's name of this node, not the host's own";
  ASSERT_EQ(options.notes.size(), 1U);
  EXPECT_EQ(options.notes[0],
            "ranks are on all 3 nodes of Slurm's job 12; --launcher local: on this one alone");
  EXPECT_EQ(parse_options({"--launcher", "slurm", "--nnodes", "2", "train"},
                          batch_script({{"SLURMD_NODENAME", ""}}))
                .hosts.node,
            -1)
      << "a login node has no ranks";
}

TEST(SlurmHosts, WhatIsTypedOfHostsWins) {
  for (const Words& words : std::vector<Words>{{"--launcher", "local"},
                                               {"-H", "localhost"},
                                               {"--include", "localhost"},
                                               {"--standalone"}}) {
    Words arguments = words;
    arguments.emplace_back("train");
    EXPECT_EQ(parse_options(arguments, batch_script()).hosts.count, 1) << words[0];
  }
  EXPECT_EQ(parse_options({"train"}, batch_script({{"SLURM_JOB_NUM_NODES", "1"}})).hosts.count, 1);
  EXPECT_EQ(parse_options({"train"}, batch_script({{"SLURM_JOB_NUM_NODES", ""}})).hosts.count, 1);
  const Options listed =
      parse_options({"--launcher", "slurm", "-H", "n3:2,n1", "-np", "2", "train"}, batch_script());
  EXPECT_EQ(listed.hosts.listed, (std::vector<ListedHost>{{"n3", 2}, {"n1", 2}}));
  EXPECT_EQ(listed.hosts.node, 1);
  EXPECT_EQ(
      refusal<InvalidArgument>({"--launcher", "slurm", "-H", "n1,x", "train"}, batch_script()),
      "-H n1,x: x is no node of this job (SLURM_JOB_NODELIST=n[1-3])");
}

TEST(SlurmHosts, RanksAreThoseThatTheJobIsMadeFor) {
  const auto of = [](const Variables& more) {
    return slots(parse_options({"train"}, batch_script(more)));
  };
  EXPECT_EQ(of({}), (std::vector<int>{1, 1, 1}));
  EXPECT_EQ(of({{"SLURM_NTASKS", "8"}, {"SLURM_TASKS_PER_NODE", "3(x2),2"}}),
            (std::vector<int>{3, 3, 2}));
  EXPECT_EQ(of({{"SLURM_NTASKS", "3"}, {"SLURM_GPUS_PER_NODE", "a100:4,l40:2"}}),
            (std::vector<int>{6, 6, 6}));
  EXPECT_EQ(of({{"SLURM_GPUS_ON_NODE", "8"}}), (std::vector<int>{8, 8, 8}));
  EXPECT_EQ(slots(parse_options({"--num_processes", "6", "train"},
                                batch_script({{"SLURM_GPUS_ON_NODE", "8"}}))),
            (std::vector<int>{2, 2, 2}));
  for (const Variables& wrong :
       std::vector<Variables>{{{"SLURM_NTASKS", "8"}, {"SLURM_TASKS_PER_NODE", "4(x2)"}},
                              {{"SLURM_NTASKS", "8"}, {"SLURM_TASKS_PER_NODE", "many"}},
                              {{"SLURM_GPUS_PER_NODE", "a100"}},
                              {{"SLURM_GPUS_PER_NODE", "-1"}},
                              {{"SLURM_GPUS_PER_NODE", "1000,1000"}}})
    EXPECT_NE(refusal<ConfigError>({"train"}, batch_script(wrong)), "") << wrong.begin()->second;
}

TEST(SlurmHosts, VariablesThatContradictAreBothNamed) {
  EXPECT_EQ(refusal<ConfigError>({"train"}, batch_script({{"SLURM_JOB_NODELIST", "n1"}})),
            "SLURM_JOB_NUM_NODES=3 contradicts SLURM_JOB_NODELIST=n1; Slurm sets both, leave them "
            "as they are");
  EXPECT_NE(refusal<ConfigError>({"train"}, batch_script({{"SLURM_NNODES", "2"}}))
                .find("SLURM_JOB_NUM_NODES=3 contradicts SLURM_NNODES=2"),
            std::string::npos);
  EXPECT_NE(refusal<ConfigError>({"train"}, batch_script({{"SLURM_JOB_NODELIST", ""}}))
                .find("SLURM_JOB_NODELIST is not set"),
            std::string::npos);
  for (const char* wrong : {"0", "x", "3x"})
    EXPECT_NE(refusal<ConfigError>({"train"}, batch_script({{"SLURM_JOB_NUM_NODES", wrong}})), "")
        << wrong;
}

TEST(SlurmHosts, ATaskOfSrunIsNoBatchScript) {
  const Variables task{
      {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "3"}, {"SLURM_PROCID", "2"}};
  const std::string text = refusal<InvalidArgument>({"train"}, batch_script(task));
  EXPECT_NE(text.find("3 times (SLURM_PROCID=2, SLURM_STEP_NUM_TASKS=3)"), std::string::npos);
  EXPECT_NE(text.find("--node-rank $SLURM_NODEID"), std::string::npos);
  EXPECT_EQ(parse_options({"--nnodes", "3", "--node-rank", "2", "--master-addr", "a",
                           "--master-port", "1", "--run-secret", "s", "train"},
                          batch_script(task))
                .hosts.node,
            2);
  Variables alone = task;
  alone["SLURM_STEP_NUM_TASKS"] = "1";
  alone["SLURM_PROCID"] = "0";
  alone["SLURM_NNODES"] = "1";
  const Options options = parse_options({"train"}, batch_script(alone));
  EXPECT_EQ(options.hosts.count, 1);
  EXPECT_NE(options.notes.at(0).find("--launcher slurm takes all 3 nodes"), std::string::npos);
  EXPECT_EQ(parse_options({"--launcher", "slurm", "train"}, batch_script(alone)).hosts.count, 3);
  alone["SLURM_PROCID"] = "1";
  EXPECT_NE(refusal<ConfigError>({"train"}, batch_script(alone)).find("contradicts"),
            std::string::npos);
  // The shell of salloc is a step, too, with a number that no srun has.
  EXPECT_EQ(parse_options({"train"}, batch_script({{"SLURM_STEP_ID", "4294967290"}})).hosts.count,
            3);
}

TEST(SlurmHosts, OneMlaunchOfTheRunRequeuesTheJob) {
  EXPECT_EQ(parse_options({"--requeue", "train"}, batch_script()).requeued_job, "12");
  const Words agent{"--requeue", "--nnodes",      "3", "--node-rank",  "1", "--master-addr",
                    "a",         "--master-port", "1", "--run-secret", "s", "train"};
  EXPECT_EQ(parse_options(agent, batch_script()).requeued_job, "");
  EXPECT_NE(refusal<InvalidArgument>({"--requeue", "train"}, {}).find("SLURM_JOB_ID is not set"),
            std::string::npos);
}

TEST(SlurmHosts, ACancelledJobDoesNotStartAgain) {
  const auto shown = [](const std::string& state) {
    return "JobId=7 JobName=job.sh UserId=root(0) " + state + " Dependency=(null) Requeue=1";
  };
  EXPECT_TRUE(may_start_again(shown("JobState=RUNNING Reason=None")));
  EXPECT_TRUE(may_start_again(shown("JobState=COMPLETING Reason=TimeLimit")));
  EXPECT_FALSE(may_start_again(shown("JobState=COMPLETING Reason=None")));
  EXPECT_FALSE(may_start_again(shown("JobState=CANCELLED Reason=None")));
}

TEST(KubeflowHosts, VariablesSayWhatIsNotTyped) {
  const Options options = parse_options({"--run-secret", "s", "train"}, kubeflow());
  EXPECT_EQ(options.hosts.count, 2);
  EXPECT_EQ(options.hosts.node, 1);
  EXPECT_EQ(options.hosts.address, "job-node-0-0.job");
  EXPECT_EQ(options.hosts.port, 29400);
  EXPECT_EQ(options.ranks, 4);
  const Options elastic =
      parse_options({"--run-secret", "s", "train"}, kubeflow({{"PET_NNODES", "1:4"}}));
  EXPECT_EQ(elastic.hosts.least, 1);
  EXPECT_EQ(elastic.hosts.count, 4);
  const Options typed =
      parse_options({"--nnodes", "3", "--node-rank", "2", "--master-addr", "b", "--master-port",
                     "7", "-np", "1", "--run-secret", "s", "train"},
                    kubeflow());
  EXPECT_EQ(typed.hosts.count, 3);
  EXPECT_EQ(typed.hosts.node, 2);
  EXPECT_EQ(typed.hosts.address, "b");
  EXPECT_EQ(typed.hosts.port, 7);
  EXPECT_EQ(typed.ranks, 1);
}

TEST(KubeflowHosts, OneHostNeedsNeitherAddressNorSecret) {
  const Options options =
      parse_options({"train"}, kubeflow({{"PET_NNODES", "1"}, {"PET_NODE_RANK", "0"}}));
  EXPECT_FALSE(options.hosts.are_several());
  EXPECT_EQ(options.ranks, 4);
  EXPECT_EQ(options.master_port, std::nullopt);
  EXPECT_FALSE(parse_options({"-H", "localhost", "train"}, kubeflow()).hosts.are_several());
  EXPECT_FALSE(parse_options({"--standalone", "train"}, kubeflow()).hosts.are_several());
}

TEST(KubeflowHosts, WrongValuesAreRefused) {
  const Words words{"--run-secret", "s", "train"};
  EXPECT_EQ(refusal<ConfigError>(words, kubeflow({{"PET_NODE_RANK", "2"}})),
            "PET_NODE_RANK=2 contradicts PET_NNODES=2: hosts have the numbers from 0 to 1");
  for (const Variables& wrong :
       std::vector<Variables>{{{"PET_NODE_RANK", "-1"}}, {{"PET_MASTER_PORT", "x"}}})
    EXPECT_NE(refusal<ConfigError>(words, kubeflow(wrong)), "") << wrong.begin()->first;
  for (const Variables& wrong : std::vector<Variables>{{{"PET_NPROC_PER_NODE", "cpu"}},
                                                       {{"PET_NNODES", "two"}},
                                                       {{"PET_NNODES", "0"}},
                                                       {{"PET_NNODES", "4:1"}}})
    EXPECT_NE(refusal<InvalidArgument>(words, kubeflow(wrong)), "") << wrong.begin()->second;
  EXPECT_EQ(refusal<InvalidArgument>({"train"}, kubeflow()),
            "PET_NNODES=2 also needs, on each host: --run-secret FILE, made once by: mlaunch "
            "secret FILE");
}

}  // namespace
}  // namespace strata::launcher
