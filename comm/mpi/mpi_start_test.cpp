// Tests of starting and ending MPI: jobs that end badly, worlds that do not fit, machines without
// the module.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "comm/factory.h"
#include "comm/testing/directory_store.h"
#include "comm/testing/forked_ranks.h"
#include "core/error.h"

namespace strata::comm {
namespace {

struct Finished {
  int exit_code = -1;
  std::string output;
};

Finished run_command(const std::string& command) {
  Finished finished;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return finished;
  char buffer[4096];
  while (const std::size_t bytes = std::fread(buffer, 1, sizeof buffer, pipe))
    finished.output.append(buffer, bytes);
  const int status = ::pclose(pipe);
  finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return finished;
}

std::filesystem::path rank_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "comm_mpi_test";
}

TEST(MpiStart, AbortEndsTheJobWithReasonAndExitCode) {
  const Finished finished = run_command(std::string(STRATA_MPIEXEC) + " -np 3 --oversubscribe " +
                                        rank_program().string() + " --abort");
  EXPECT_EQ(finished.exit_code, static_cast<int>(ExitCode::data)) << finished.output;
  EXPECT_NE(finished.output.find("rank 1: cannot read corpus.bin"), std::string::npos)
      << finished.output;
}

// Fault 2.
TEST(MpiStart, AWaitEndsAtTheLaunchersWord) {
  const Finished finished = run_command(std::string(STRATA_MPIEXEC) + " -np 2 --oversubscribe " +
                                        rank_program().string() + " --stop");
  EXPECT_EQ(finished.exit_code, static_cast<int>(ExitCode::try_again)) << finished.output;
  EXPECT_NE(finished.output.find("mlaunch: host b is lost"), std::string::npos) << finished.output;
}

TEST(MpiStart, SaysWhereItLookedForTheModule) {
  const TemporaryFolder folder;
  const std::filesystem::path alone = folder.path() / "bin" / "comm_mpi_test";
  std::filesystem::create_directory(alone.parent_path());
  std::filesystem::copy_file(rank_program(), alone);
  const Finished finished = run_command(alone.string() + " --abort");
  EXPECT_NE(finished.output.find("needs libstrata_mpi.so, which is not at " +
                                 (folder.path() / "lib/libstrata_mpi.so").string()),
            std::string::npos)
      << finished.output;

  std::filesystem::create_directory(folder.path() / "lib");
  std::ofstream(folder.path() / "lib/libstrata_mpi.so") << "no module";
  const Finished broken = run_command(alone.string() + " --abort");
  EXPECT_NE(broken.output.find("cannot load " + (folder.path() / "lib/libstrata_mpi.so").string()),
            std::string::npos)
      << broken.output;
}

std::string refusal(const RankContext& context) {
  try {
    make_communicator(context, "mpi");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(MpiStart, RefusesAWorldThatMpirunDidNotMake) {
  // Forks, since MPI starts once per process.
  const std::vector<int> statuses = run_forked(1, [](int) {
    const RankContext context{.rank = 1, .world = 4, .started_by = "test"};
    EXPECT_EQ(refusal(context),
              "MPI says this is rank 0 of 1, the launcher says rank 1 of 4; start the program with "
              "this Open MPI's mpirun");
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(statuses, std::vector<int>(1));
}

TEST(MpiStart, AnSrunThatDoesNotConnectItsRanksIsToldHow) {
  const std::vector<int> statuses = run_forked(1, [](int) {
    const RankContext context{.rank = 1, .world = 4, .started_by = "slurm"};
    EXPECT_NE(refusal(context).find("srun --mpi=pmix"), std::string::npos);
    return testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(statuses, std::vector<int>(1));
}

}  // namespace
}  // namespace strata::comm
