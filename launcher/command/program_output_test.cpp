#include "launcher/command/program_output.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "core/error.h"

namespace strata::launcher {
namespace {

std::string refusal(const std::vector<std::string>& command) {
  try {
    (void)output_of(command);
  } catch (const HostError& error) {
    return error.what();
  }
  return "";
}

TEST(ProgramOutput, HasWhatAProgramPrints) {
  EXPECT_EQ(output_of({"printf", "a\\nb $HOME"}), "a\nb $HOME");
  EXPECT_EQ(output_of({"cat"}), "") << "it has no input";
}

TEST(ProgramOutput, AFailureIsToldInTheProgramsWords) {
  EXPECT_EQ(refusal({"sh", "-c", "echo no such job >&2; exit 3"}),
            "sh -c echo no such job >&2; exit 3 has failed: no such job\n");
  EXPECT_EQ(refusal({"strata-no-such-program"}),
            "cannot start strata-no-such-program: No such file or directory");
  EXPECT_NE(refusal({"sh", "-c", "kill -9 $$"}), "");
}

TEST(ProgramOutput, AProgramHearsSignalsThatThisOneBlocks) {
  sigset_t before, blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ASSERT_EQ(::sigprocmask(SIG_BLOCK, &blocked, &before), 0);
  const std::string text = refusal({"sh", "-c", "kill -TERM $$; echo goes on"});
  ASSERT_EQ(::sigprocmask(SIG_SETMASK, &before, nullptr), 0);
  EXPECT_EQ(text, "sh -c kill -TERM $$; echo goes on has failed: ");
}

TEST(ProgramOutput, WhatDoesNotEndIsKilled) {
  try {
    (void)output_of({"sleep", "60"}, std::chrono::milliseconds(100));
    FAIL();
  } catch (const HostError& error) {
    EXPECT_STREQ(error.what(), "sleep 60 has not ended within 0.1 s; does it work in a shell?");
  }
}

TEST(ProgramOutput, WhatRunsOnWithoutItsOutputIsKilled) {
  try {
    (void)output_of({"sh", "-c", "exec >&- 2>&-; exec sleep 60"}, std::chrono::milliseconds(100));
    FAIL();
  } catch (const HostError& error) {
    EXPECT_STREQ(error.what(),
                 "sh -c exec >&- 2>&-; exec sleep 60 has not ended within 0.1 s; "
                 "does it work in a shell?");
  }
}

}  // namespace
}  // namespace strata::launcher
