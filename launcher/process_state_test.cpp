#include "launcher/process_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "core/testing/test_directory.h"

namespace strata::launcher {
namespace {

/// A process that sleeps until it is killed.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    while (pid_ == 0) ::pause();
  }
  ~Sleeper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(ProcessState, KnowsWhoIsStopped) {
  const Sleeper process;
  EXPECT_FALSE(read_process_state(process.pid()).held);
  ASSERT_EQ(::kill(process.pid(), SIGSTOP), 0);
  ASSERT_EQ(::waitpid(process.pid(), nullptr, WUNTRACED), process.pid());
  EXPECT_TRUE(read_process_state(process.pid()).held);
  EXPECT_FALSE(read_process_state(process.pid()).traced);
  ASSERT_EQ(::kill(process.pid(), SIGCONT), 0);
  ASSERT_EQ(::waitpid(process.pid(), nullptr, WCONTINUED), process.pid());
  EXPECT_FALSE(read_process_state(process.pid()).held);
}

TEST(ProcessState, SaysNothingOfAProcessThatIsGone) {
  const ProcessState state = read_process_state(0x3fffffff);
  EXPECT_FALSE(state.held);
  EXPECT_FALSE(state.traced);
}

TEST(ProcessState, KnowsFrozenGroupsAndDebuggers) {
  const TestDirectory processes;
  const std::filesystem::path process = std::filesystem::path(processes.path()) / "7";
  std::filesystem::create_directory(process);
  std::ofstream(process / "status") << "Name:\ttrain\nState:\tD (disk sleep)\nTracerPid:\t0\n";
  std::ofstream(process / "wchan") << "do_freezer_trap";
  EXPECT_TRUE(read_process_state(7, processes.path()).held);
  EXPECT_FALSE(read_process_state(7, processes.path()).traced);
  std::ofstream(process / "wchan") << "ptrace_stop";
  std::ofstream(process / "status") << "Name:\ttrain\nState:\tt (tracing stop)\nTracerPid:\t12\n";
  EXPECT_FALSE(read_process_state(7, processes.path()).held);
  EXPECT_TRUE(read_process_state(7, processes.path()).traced);
}

}  // namespace
}  // namespace strata::launcher
