#include "core/rank_context.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/status_page.h"

namespace strata {
namespace {

/// Sets exactly the given launcher variables and unsets all others.
class RankContextTest : public ::testing::Test {
 protected:
  void set(const std::map<std::string, std::string>& variables) {
    for (const char* prefix :
         {"STRATA_", "OMPI_", "SLURM", "PMI", "MV2_", "TORCHELASTIC_", "RANK", "WORLD_SIZE",
          "LOCAL_", "GROUP_", "CROSS_", "MASTER_", "MPI_", "PALS_", "JSM_", "FLUX_", "HOROVOD_"})
      unset_all(prefix);
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  }
  void TearDown() override { set({}); }

  static void unset_all(const std::string& prefix) {
    std::vector<std::string> names;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string text = *entry;
      if (text.rfind(prefix, 0) == 0) names.push_back(text.substr(0, text.find('=')));
    }
    for (const std::string& name : names) ::unsetenv(name.c_str());
  }

  /// A complete set of variables as mlaunch gives them. The context takes over their socket.
  std::map<std::string, std::string> mlaunch_variables() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    other_end_ = UniqueFd(ends[1]);
    socket_ = ends[0];
    return {{"STRATA_RANK", "3"},
            {"STRATA_WORLD", "8"},
            {"STRATA_LOCAL_RANK", "3"},
            {"STRATA_LOCAL_WORLD", "8"},
            {"STRATA_NODE", "0"},
            {"STRATA_FIRST_RANKS", "0"},
            {"STRATA_HOST", "node"},
            {"STRATA_RUN_ID", "abc"},
            {"STRATA_ATTEMPT", "1"},
            {"STRATA_LAST_STEP", "57"},
            {"STRATA_LOCK_WAIT", "20"},
            {"STRATA_GRACE", "30"},
            {"STRATA_STORE_FD", std::to_string(ends[0])},
            {"STRATA_STATUS_FD", std::to_string(page_.fd())},
            {"STRATA_TERMINAL", "stderr"}};
  }

  std::string refusal() {
    try {
      rank_context_from_environment();
    } catch (const ConfigError& error) {
      ::close(socket_);
      return error.what();
    }
    return "";
  }

  StatusPage page_ = StatusPage::create(3);
  UniqueFd other_end_;
  int socket_ = -1;
};

TEST_F(RankContextTest, APlainStartIsOneRank) {
  set({});
  const RankContext context = rank_context_from_environment();
  EXPECT_EQ(context.rank, 0);
  EXPECT_EQ(context.world, 1);
  EXPECT_EQ(context.started_by, "none");
  EXPECT_EQ(context.last_step, -1);
  EXPECT_FALSE(context.lock_wait);
  EXPECT_EQ(context.run_id.size(), 16u);
  ASSERT_NE(context.store, nullptr);
  context.store->put("k", "v");
  EXPECT_EQ(context.store->get("k", std::chrono::seconds(1)), "v");
}

TEST_F(RankContextTest, ReadsMlaunch) {
  set(mlaunch_variables());
  const RankContext context = rank_context_from_environment();
  EXPECT_EQ(context.rank, 3);
  EXPECT_EQ(context.world, 8);
  EXPECT_EQ(context.local_rank, 3);
  EXPECT_EQ(context.local_world, 8);
  EXPECT_EQ(context.host, "node");
  EXPECT_EQ(context.run_id, "abc");
  EXPECT_EQ(context.attempt, 1);
  EXPECT_EQ(context.last_step, 57);
  EXPECT_EQ(context.lock_wait, std::chrono::seconds(20));
  EXPECT_GT(context.start_limit, std::chrono::hours(1)) << "mlaunch ends waits that are in vain";
  EXPECT_EQ(context.started_by, "mlaunch");
  EXPECT_EQ(context.grace, std::chrono::seconds(30));
  EXPECT_EQ(StatusPage::open(context.status_fd).data().rank, 3);
  EXPECT_NE(context.store, nullptr);
  EXPECT_FALSE(context.stdout_is_terminal);
  EXPECT_TRUE(context.stderr_is_terminal);
}

TEST_F(RankContextTest, ReadsTheHostsOfMlaunch) {
  auto variables = mlaunch_variables();
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"STRATA_LOCAL_RANK", "1"},
                                          {"STRATA_LOCAL_WORLD", "4"},
                                          {"STRATA_NODE", "1"},
                                          {"STRATA_FIRST_RANKS", "0,2,6"}})
    variables[name] = value;
  set(variables);
  const RankContext context = rank_context_from_environment();
  EXPECT_EQ(context.rank, 3);
  EXPECT_EQ(context.local_rank, 1);
  EXPECT_EQ(context.node, 1);
  EXPECT_EQ(context.first_ranks, (std::vector{0, 2, 6}));
}

TEST_F(RankContextTest, RefusesContradictionsOfMlaunchByName) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"STRATA_RANK", "8"},          {"STRATA_RANK", "-1"},         {"STRATA_RANK", "x"},
      {"STRATA_WORLD", "0"},         {"STRATA_LOCAL_RANK", "9"},    {"STRATA_LOCAL_WORLD", "9"},
      {"STRATA_ATTEMPT", "1.5"},     {"STRATA_LAST_STEP", "-1"},    {"STRATA_LOCK_WAIT", "soon"},
      {"STRATA_GRACE", "-1"},        {"STRATA_STORE_FD", "99999"},  {"STRATA_STATUS_FD", "0x1"},
      {"STRATA_STATUS_FD", "-2"},    {"OMPI_COMM_WORLD_SIZE", "4"}, {"STRATA_NODE", "1"},
      {"STRATA_FIRST_RANKS", "1"},   {"STRATA_FIRST_RANKS", "0,8"}, {"STRATA_FIRST_RANKS", "0,0"},
      {"STRATA_FIRST_RANKS", "0,4"}, {"STRATA_FIRST_RANKS", ""},    {"STRATA_LOCAL_RANK", "2"}};
  for (const auto& [name, value] : cases) {
    auto variables = mlaunch_variables();
    variables[name] = value;
    set(variables);
    EXPECT_NE(refusal().find(name + "=" + value), std::string::npos) << name << "=" << value;
  }
  for (const char* name : {"STRATA_WORLD", "STRATA_RUN_ID", "STRATA_STORE_FD"}) {
    auto variables = mlaunch_variables();
    variables.erase(name);
    set(variables);
    EXPECT_NE(refusal().find(std::string(name) + "=(not set)"), std::string::npos) << name;
  }
}

TEST_F(RankContextTest, ReadsOpenMpi) {
  set({{"OMPI_COMM_WORLD_RANK", "5"},
       {"OMPI_COMM_WORLD_SIZE", "6"},
       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
       {"STRATA_RUN_ID", "from mlaunch --launcher mpi"}});
  const RankContext context = rank_context_from_environment();
  EXPECT_EQ(context.rank, 5);
  EXPECT_EQ(context.world, 6);
  EXPECT_EQ(context.local_rank, 1);
  EXPECT_EQ(context.local_world, 2);
  EXPECT_EQ(context.started_by, "openmpi");
  EXPECT_EQ(context.run_id, "from mlaunch --launcher mpi");
  EXPECT_EQ(context.store, nullptr);
}

TEST_F(RankContextTest, RefusesOpenMpiWithoutASize) {
  set({{"OMPI_COMM_WORLD_RANK", "5"}});
  EXPECT_NE(refusal().find("OMPI_COMM_WORLD_SIZE=(not set)"), std::string::npos);
}

std::map<std::string, std::string> slurm_variables() {
  return {{"SLURM_JOB_ID", "77"},         {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", "9"},          {"SLURM_NTASKS", "11"},
          {"SLURM_STEP_NUM_TASKS", "11"}, {"SLURM_NODEID", "2"},
          {"SLURM_LOCALID", "1"},         {"SLURM_STEP_TASKS_PER_NODE", "4(x2),3"},
          {"SLURMD_NODENAME", "n7"},      {"SLURM_RESTART_COUNT", "2"}};
}

TEST_F(RankContextTest, ReadsASlurmStep) {
  set(slurm_variables());
  const RankContext context = rank_context_from_environment();
  EXPECT_EQ(context.rank, 9);
  EXPECT_EQ(context.world, 11);
  EXPECT_EQ(context.local_rank, 1);
  EXPECT_EQ(context.local_world, 3);
  EXPECT_EQ(context.host, "n7");
  EXPECT_EQ(context.run_id, "77.0");
  EXPECT_EQ(context.attempt, 2);
  EXPECT_EQ(context.started_by, "slurm");
}

TEST_F(RankContextTest, ABatchScriptOrInteractiveShellOfSlurmIsNoStep) {
  for (const char* step : {"", "4294967291", "4294967290"}) {
    auto variables = slurm_variables();
    variables["SLURM_STEP_ID"] = step;
    set(variables);
    EXPECT_EQ(rank_context_from_environment().started_by, "none") << step;
  }
}

TEST_F(RankContextTest, RefusesContradictionsOfSlurm) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"SLURM_PROCID", "11"},
      {"SLURM_LOCALID", "3"},
      {"SLURM_NODEID", "3"},
      {"SLURM_STEP_TASKS_PER_NODE", "4(x"},
      {"SLURM_STEP_TASKS_PER_NODE", "0,3"}};
  for (const auto& [name, value] : cases) {
    auto variables = slurm_variables();
    variables[name] = value;
    set(variables);
    EXPECT_NE(refusal().find(name + "=" + value), std::string::npos) << name << "=" << value;
  }
}

/// Variables that torchrun gives to rank 2 of four.
std::map<std::string, std::string> torch_variables() {
  return {{"RANK", "2"},
          {"WORLD_SIZE", "4"},
          {"LOCAL_RANK", "2"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"GROUP_RANK", "0"},
          {"GROUP_WORLD_SIZE", "1"},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(20000 + ::getpid() % 10000)},
          {"TORCHELASTIC_RUN_ID", "none"},
          {"TORCHELASTIC_RESTART_COUNT", "1"}};
}

TEST_F(RankContextTest, ReadsTorchrun) {
  auto variables = torch_variables();
  set(variables);
  const RankContext context = rank_context_from_environment();
  EXPECT_EQ(context.rank, 2);
  EXPECT_EQ(context.world, 4);
  EXPECT_EQ(context.local_rank, 2);
  EXPECT_EQ(context.local_world, 4);
  EXPECT_EQ(context.attempt, 1);
  char host[256] = {};
  ASSERT_EQ(::gethostname(host, sizeof host - 1), 0);
  EXPECT_EQ(context.host, host);
  EXPECT_EQ(context.started_by, "torchrun");
  variables["RANK"] = variables["LOCAL_RANK"] = "0";
  set(variables);
  const RankContext first = rank_context_from_environment();
  EXPECT_EQ(first.run_id, context.run_id);
  first.store->put("k", "v");
  EXPECT_EQ(context.store->get("k", std::chrono::seconds(5)), "v");
}

TEST_F(RankContextTest, ReadsDeepSpeedsLauncher) {
  auto variables = torch_variables();
  for (const char* name : {"LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE",
                           "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"})
    variables.erase(name);
  variables["LOCAL_SIZE"] = "4";
  variables["CROSS_SIZE"] = "1";
  set(variables);
  EXPECT_EQ(rank_context_from_environment().local_world, 4);
}

TEST_F(RankContextTest, RanksOfTorchrunOnSeveralHostsAreRefusedWithACommandThatWorks) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"GROUP_WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", "2"}, {"LOCAL_WORLD_SIZE", ""}};
  for (const auto& [name, value] : cases) {
    auto variables = torch_variables();
    variables["LOCAL_RANK"] = "1";
    variables[name] = value;
    set(variables);
    const std::string text = refusal();
    EXPECT_NE(text.find(name + "=" + (value.empty() ? "(not set)" : value)), std::string::npos)
        << text;
    EXPECT_NE(text.find("mlaunch -np 4 train"), std::string::npos) << text;
  }
}

TEST_F(RankContextTest, RefusesContradictionsOfTorchrun) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"RANK", "4"},       {"RANK", "x"},        {"WORLD_SIZE", "zero"},
      {"LOCAL_RANK", "4"}, {"MASTER_PORT", "x"}, {"LOCAL_WORLD_SIZE", "5"},
      {"WORLD_SIZE", "0"}};
  for (const auto& [name, value] : cases) {
    auto variables = torch_variables();
    variables[name] = value;
    set(variables);
    EXPECT_NE(refusal().find(name + "=" + value), std::string::npos) << name << "=" << value;
  }
  auto without_port = torch_variables();
  without_port.erase("MASTER_PORT");
  set(without_port);
  EXPECT_NE(refusal().find("but no MASTER_PORT"), std::string::npos) << refusal();
  set({{"RANK", "0"}});
  EXPECT_NE(refusal().find("WORLD_SIZE=(not set)"), std::string::npos);
  set({{"WORLD_SIZE", "4"}});
  EXPECT_NE(refusal().find("mlaunch -np 4 train"), std::string::npos);
}

TEST_F(RankContextTest, AWorldOfOneIsAPlainStart) {
  const std::vector<std::map<std::string, std::string>> cases{
      {{"WORLD_SIZE", "1"}},
      {{"WORLD_SIZE", ""}, {"RANK", ""}},
      {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}}};
  for (const auto& variables : cases) {
    set(variables);
    const RankContext context = rank_context_from_environment();
    EXPECT_EQ(context.world, 1);
    EXPECT_EQ(context.started_by, "none");
  }
}

TEST_F(RankContextTest, TorchrunInsideAnSrunOfOneTaskCounts) {
  auto variables = slurm_variables();
  variables["SLURM_PROCID"] = variables["SLURM_NODEID"] = variables["SLURM_LOCALID"] = "0";
  variables["SLURM_NTASKS"] = variables["SLURM_STEP_NUM_TASKS"] = "1";
  variables["SLURM_STEP_TASKS_PER_NODE"] = "1";
  for (const auto& variable : torch_variables()) variables.insert(variable);
  set(variables);
  EXPECT_EQ(rank_context_from_environment().world, 4);
}

TEST_F(RankContextTest, LaunchersInsideOneAnotherAreRefused) {
  auto variables = slurm_variables();
  for (const auto& variable : torch_variables()) variables.insert(variable);
  set(variables);
  EXPECT_NE(refusal().find("WORLD_SIZE=4 contradicts SLURM_NTASKS=11"), std::string::npos);
  variables.erase("RANK");  // WORLD_SIZE alone may be a script's own export
  set(variables);
  EXPECT_EQ(rank_context_from_environment().started_by, "slurm");
  auto of_mlaunch = mlaunch_variables();
  of_mlaunch["WORLD_SIZE"] = "4";
  of_mlaunch["TORCHELASTIC_RUN_ID"] = "none";
  set(of_mlaunch);
  EXPECT_NE(refusal().find("WORLD_SIZE=4 contradicts STRATA_WORLD=8"), std::string::npos);
}

TEST_F(RankContextTest, AnotherLauncherIsRefused) {
  set({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}});
  EXPECT_NE(refusal().find("PMI_SIZE=4: these ranks were started by a launcher"),
            std::string::npos);
  for (const std::string name : {"MV2_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "PALS_LOCAL_SIZE",
                                 "JSM_NAMESPACE_SIZE", "FLUX_JOB_SIZE", "HOROVOD_SIZE"}) {
    set({{name, "2"}});
    EXPECT_NE(refusal().find(name + "=2"), std::string::npos);
  }
  set({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}});
  EXPECT_EQ(rank_context_from_environment().started_by, "none");
}

}  // namespace
}  // namespace strata
