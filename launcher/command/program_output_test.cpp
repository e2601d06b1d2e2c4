#include "launcher/command/program_output.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace strata::launcher
