#include "launcher/group/process_start.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/testing/test_directory.h"

namespace strata::launcher {
namespace {

std::string stat_line(const std::string& state, const std::string& start) {
  std::string line = "7 (a (b) c) " + state;
  for (int field = 4; field < 22; ++field) line += " 1";
  return line + " " + start + " 5 6\n";
}

/// A folder as /proc, with a process.
void add(const TestDirectory& processes, const std::string& pid, const std::string& stat) {
  std::filesystem::create_directory(processes / pid);
  (void)processes.file(pid + "/stat", stat);
}

TEST(ProcessStart, TellsAProcessFromAnotherOneWithItsNumber) {
  const TestDirectory processes;
  add(processes, "7", stat_line("S", "1234"));
  EXPECT_EQ(process_start(7, processes.path()), 1234);
  EXPECT_TRUE(goes_on(7, 1234, processes.path()));
  EXPECT_TRUE(goes_on(7, std::nullopt, processes.path()));
  EXPECT_FALSE(goes_on(7, 1233, processes.path())) << "the number was given again";
  EXPECT_FALSE(goes_on(8, std::nullopt, processes.path()));
}

TEST(ProcessStart, IsUnknownOfWhatHasEnded) {
  const TestDirectory processes;
  add(processes, "7", stat_line("Z", "1234"));
  add(processes, "8", "8 (short) S 1 1\n");
  EXPECT_FALSE(process_start(7, processes.path()).has_value());
  EXPECT_FALSE(process_start(8, processes.path()).has_value());
}

TEST(ProcessStart, IsReadFromTheKernel) {
  EXPECT_TRUE(goes_on(::getpid(), process_start(::getpid())));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(goes_on(child, std::nullopt)) << "nobody has taken its code yet";
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(goes_on(child, std::nullopt));
}

}  // namespace
}  // namespace strata::launcher
