#include "launcher/output/report_writers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "core/testing/test_directory.h"

namespace strata::launcher {
namespace {

using std::chrono::milliseconds;

constexpr std::chrono::seconds kAtLast{180};
constexpr const char* kRun = "0123456789abcdef";

std::string content(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

/// Makes close_range fail with EPERM in this thread and what it starts, as a container's policy
/// does; false: this machine does not allow it.
bool forbid_close_range() {
  constexpr int kSystemCallNumber = offsetof(seccomp_data, nr);
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSystemCallNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// Writers that do what a script says, with the words of their command line as $1 and so on.
class ReportWritersTest : public testing::Test {
 protected:
  ReportWriters writers_that(const std::string& script) {
    const std::string program = home_.file("writer", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return ReportWriters(program);
  }
  const TestDirectory home_;
};

TEST_F(ReportWritersTest, WriteWhatTheyGet) {
  ReportWriters writers = writers_that("cat > " + (home_ / "report") + "; echo $1 $2 $3");
  EXPECT_TRUE(writers.is_idle());
  const std::string large(std::size_t{3} << 20, 'x');  // no pipe holds it
  writers.start("/path", kRun, "attempt_0/report.txt", large);
  ASSERT_TRUE(writers.wait(kAtLast));
  EXPECT_EQ(content(home_ / "report"), large);
  const auto ended = writers.take_ended();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].path, "/path");
  EXPECT_EQ(ended[0].failure, "--write-report 0123456789abcdef attempt_0/report.txt");
  EXPECT_TRUE(writers.is_idle());
}

TEST_F(ReportWritersTest, SayWhatIsWrong) {
  for (const auto& [script, failure] : std::vector<std::pair<std::string, std::string>>{
           {"echo written", ""},
           {"echo 'ERROR: ld.so: cannot be preloaded' >&2; echo written", ""},
           {"seq 5000 >&2; echo written", ""},
           {"echo 'ERROR: ld.so: cannot be preloaded' >&2; echo 'no space'", "no space"},
           {"echo 'cannot make the folder /x: Not a directory'; exit 69",
            "cannot make the folder /x: Not a directory"},
           {"kill -KILL $$", "the process that writes it was ended"}}) {
    ReportWriters writers = writers_that(script);
    writers.start("/path", kRun, "report.txt", "text");
    ASSERT_TRUE(writers.wait(kAtLast));
    const auto ended = writers.take_ended();
    ASSERT_EQ(ended.size(), 1U);
    EXPECT_EQ(ended[0].failure, failure) << script;
  }
  ReportWriters nobody(home_ / "no such program");
  nobody.start("/path", kRun, "report.txt", "text");
  ASSERT_TRUE(nobody.wait(kAtLast));
  EXPECT_EQ(nobody.take_ended().at(0).failure,
            "the process that writes it cannot start: No such file or directory");
}

TEST_F(ReportWritersTest, WriteWhereNobodyMayCloseManyFilesAtOnce) {
  ReportWriters writers = writers_that("echo written");
  bool may_forbid = false;
  std::thread([&] {
    may_forbid = forbid_close_range();
    writers.start("/path", kRun, "report.txt", "text");
  }).join();
  ASSERT_TRUE(writers.wait(kAtLast));
  if (!may_forbid) GTEST_SKIP() << "no system call can be forbidden here";
  EXPECT_EQ(writers.take_ended().at(0).failure, "");
}

TEST_F(ReportWritersTest, AreGoneOnceTheirEndIsTold) {
  ReportWriters writers = writers_that("echo written");
  writers.start("/path", kRun, "report.txt", "text");
  const pid_t pid = std::stoi(writers.unfinished().substr(std::string("/path (process ").size()));
  EXPECT_EQ(::kill(pid, 0), 0);
  ASSERT_TRUE(writers.wait(kAtLast));
  EXPECT_EQ(writers.take_ended().at(0).failure, "");
  EXPECT_EQ(::kill(pid, 0), -1) << "it waits to be reaped";
}

TEST_F(ReportWritersTest, MayBeReapedByOthers) {
  ReportWriters writers = writers_that("echo written");
  writers.start("/path", kRun, "report.txt", "text");
  const pid_t pid = std::stoi(writers.unfinished().substr(std::string("/path (process ").size()));
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  EXPECT_TRUE(writers.wait(milliseconds(0)));
  EXPECT_EQ(writers.take_ended().at(0).failure, "");
}

TEST_F(ReportWritersTest, ThatHangHoldNobodyUp) {
  const std::string gate = home_ / "gate";
  ASSERT_EQ(::mkfifo(gate.c_str(), 0600), 0);
  ReportWriters writers = writers_that("[ $3 = quick ] || read line < " + gate + "; echo written");
  writers.start("/slow", kRun, "slow", "text");
  EXPECT_FALSE(writers.wait(milliseconds(20)));
  writers.start("/quick", kRun, "quick", "text");
  std::vector<pollfd> entries;
  writers.add_polls(entries);
  ASSERT_GT(::poll(entries.data(), entries.size(), static_cast<int>(milliseconds(kAtLast).count())),
            0);
  const auto ended = writers.take_ended();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].path, "/quick");
  EXPECT_TRUE(writers.unfinished().starts_with("/slow (process ")) << writers.unfinished();
  EXPECT_EQ(writers.unfinished().find("/quick"), std::string::npos);
  std::ofstream(gate) << "go on\n";
  EXPECT_TRUE(writers.wait(kAtLast));
  EXPECT_EQ(writers.take_ended().at(0).failure, "");
}

TEST_F(ReportWritersTest, HoldNothingOpenOfTheirMlaunch) {
  ReportWriters writers = writers_that("ls /proc/$$/fd | tr '\\n' ' '");
  const UniqueFd inherited(::fcntl(STDOUT_FILENO, F_DUPFD, 50));  // none of the shell's own
  writers.start("/path", kRun, "report.txt", "text");
  ASSERT_TRUE(writers.wait(kAtLast));
  const std::string open = writers.take_ended().at(0).failure;
  EXPECT_TRUE(open.starts_with("0 1 ")) << open;
  EXPECT_EQ(open.find(" " + std::to_string(inherited.get()) + " "), std::string::npos) << open;
}

}  // namespace
}  // namespace strata::launcher
