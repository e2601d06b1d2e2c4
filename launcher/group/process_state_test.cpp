#include "launcher/group/process_state.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

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

/// A real group of this host that freezes what is in it.
class Freezer {
 public:
  /// `root`: where groups are made; `file`, with `words`: freezes, and thaws.
  Freezer(const std::filesystem::path& root, std::string file, std::array<std::string, 2> words)
      : folder_(root / ("strata-test-" + std::to_string(::getpid()))),
        file_(std::move(file)),
        words_(std::move(words)) {
    std::error_code error;
    usable_ = std::filesystem::create_directory(folder_, error) &&
              std::filesystem::exists(folder_ / file_, error);
  }
  ~Freezer() {
    std::error_code error;
    for (int i = 0; i < 100 && !std::filesystem::remove(folder_, error) && error; ++i)
      ::usleep(10'000);
  }
  Freezer(const Freezer&) = delete;
  Freezer& operator=(const Freezer&) = delete;

  [[nodiscard]] bool usable() const { return usable_; }
  bool take(pid_t pid) { return write("cgroup.procs", std::to_string(pid)); }
  void freeze(bool yes) { ASSERT_TRUE(write(file_, words_[yes ? 0 : 1])); }

 private:
  bool write(const std::string& file, const std::string& text) {
    std::ofstream stream(folder_ / file);
    return static_cast<bool>(stream << text << std::flush);
  }

  std::filesystem::path folder_;
  std::string file_;
  std::array<std::string, 2> words_;
  bool usable_ = false;
};

/// Waits, since a group freezes its processes one after the other.
bool becomes_held(pid_t pid) {
  for (int i = 0; i < 200; ++i, ::usleep(10'000))
    if (read_process_state(pid).held()) return true;
  return false;
}

void expect_freezing_is_seen(Freezer& freezer) {
  const Sleeper process;
  if (!freezer.usable() || !freezer.take(process.pid()))
    GTEST_SKIP() << "control groups cannot be made here (not root, or /sys/fs/cgroup is read-only)";
  EXPECT_FALSE(read_process_state(process.pid()).held());
  freezer.freeze(true);
  EXPECT_TRUE(becomes_held(process.pid()));
  EXPECT_TRUE(read_process_state(process.pid()).frozen);
  EXPECT_FALSE(read_process_state(process.pid()).stopped);
  freezer.freeze(false);
  EXPECT_FALSE(read_process_state(process.pid()).held());
}

TEST(ProcessState, KnowsWhoIsStopped) {
  const Sleeper process;
  EXPECT_FALSE(read_process_state(process.pid()).held());
  ASSERT_EQ(::kill(process.pid(), SIGSTOP), 0);
  ASSERT_EQ(::waitpid(process.pid(), nullptr, WUNTRACED), process.pid());
  EXPECT_TRUE(read_process_state(process.pid()).stopped);
  EXPECT_FALSE(read_process_state(process.pid()).frozen);
  EXPECT_FALSE(read_process_state(process.pid()).traced);
  ASSERT_EQ(::kill(process.pid(), SIGCONT), 0);
  ASSERT_EQ(::waitpid(process.pid(), nullptr, WCONTINUED), process.pid());
  EXPECT_FALSE(read_process_state(process.pid()).held());
}

// Fault 9.
TEST(ProcessState, OneThatIsStoppedAnewHasRunBetweenAndOneThatStaysStoppedHasNot) {
  const Sleeper process;
  const auto stop = [&] {
    ASSERT_EQ(::kill(process.pid(), SIGSTOP), 0);
    ASSERT_EQ(::waitpid(process.pid(), nullptr, WUNTRACED), process.pid());
    ::usleep(10'000);  // it says that it is stopped before it has left its core
  };
  stop();
  const ProcessState first = read_process_state(process.pid());
  EXPECT_GT(first.switches, 0U);
  ::usleep(100'000);
  EXPECT_EQ(read_process_state(process.pid()).switches, first.switches);
  ASSERT_EQ(::kill(process.pid(), SIGCONT), 0);
  stop();
  EXPECT_GT(read_process_state(process.pid()).switches, first.switches)
      << "though it only waits all the time";
}

TEST(ProcessState, SaysNothingOfAProcessThatIsGone) {
  const ProcessState state = read_process_state(0x3fffffff);
  EXPECT_FALSE(state.held());
  EXPECT_FALSE(state.traced);
  EXPECT_EQ(state.switches, 0U);
}

// Fault 7.
TEST(ProcessState, KnowsRealFrozenGroupsOfVersion1) {
  Freezer freezer("/sys/fs/cgroup/freezer", "freezer.state", {"FROZEN", "THAWED"});
  expect_freezing_is_seen(freezer);
}

// Fault 7.
TEST(ProcessState, KnowsRealFrozenGroupsOfVersion2) {
  const bool both = std::filesystem::exists("/sys/fs/cgroup/unified");
  Freezer freezer(both ? "/sys/fs/cgroup/unified" : "/sys/fs/cgroup", "cgroup.freeze", {"1", "0"});
  expect_freezing_is_seen(freezer);
}

/// What the kernel shows of groups that cannot be made on every host.
class GroupFiles : public testing::Test {
 protected:
  void process(const std::string& status, const std::string& groups) {
    std::filesystem::create_directories(processes_ / "7");
    processes_.file("7/status", status);
    processes_.file("7/cgroup", groups);
  }
  void group(const std::string& path, const std::string& file, const std::string& text) {
    std::filesystem::create_directories(hierarchies_ / path);
    hierarchies_.file(path + "/" + file, text);
  }
  [[nodiscard]] ProcessState read() const {
    return read_process_state(7, processes_.path(), hierarchies_.path());
  }

  TestDirectory processes_;
  TestDirectory hierarchies_;
};

constexpr const char* kSleeps = "Name:\ttrain\nState:\tS (sleeping)\nTracerPid:\t0\n";

TEST_F(GroupFiles, AFrozenParentHoldsItsChildren) {
  process(kSleeps, "0::/job/step\n");
  group("job/step", "cgroup.freeze", "0\n");
  group("job", "cgroup.freeze", "0\n");
  EXPECT_FALSE(read().held());
  group("job", "cgroup.freeze", "1\n");
  EXPECT_TRUE(read().frozen);
  EXPECT_EQ(read().thaw, "echo 0 > " + hierarchies_.path() + "/job/cgroup.freeze");
}

TEST_F(GroupFiles, TheOutermostFrozenGroupOfVersion1IsTheOneToThaw) {
  process(kSleeps, "6:freezer:/job/step\n");
  group("freezer/job/step", "freezer.state", "FROZEN\n");
  group("freezer/job", "freezer.state", "FROZEN\n");
  EXPECT_EQ(read().thaw, "echo THAWED > " + hierarchies_.path() + "/freezer/job/freezer.state");
}

TEST_F(GroupFiles, AGroupOfVersion1ThatFreezesHolds) {
  process(kSleeps, "6:freezer:/job\n");
  group("freezer/job", "freezer.state", "THAWED\n");
  EXPECT_FALSE(read().held());
  group("freezer/job", "freezer.state", "FREEZING\n");
  EXPECT_TRUE(read().frozen);
}

TEST_F(GroupFiles, WhoRunsIsNotHeldYet) {
  process("Name:\ttrain\nState:\tR (running)\nTracerPid:\t0\n", "0::/job\n");
  group("job", "cgroup.freeze", "1\n");
  EXPECT_FALSE(read().held());
}

TEST_F(GroupFiles, ADebuggerDoesNotHold) {
  process("Name:\ttrain\nState:\tt (tracing stop)\nTracerPid:\t12\n", "0::/\n");
  EXPECT_FALSE(read().held());
  EXPECT_TRUE(read().traced);
}

}  // namespace
}  // namespace strata::launcher
