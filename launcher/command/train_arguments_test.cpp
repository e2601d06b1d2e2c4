#include "launcher/command/train_arguments.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata::launcher {
namespace {

/// Returns what this script, as train, says of a command that it refuses; "": it refuses nothing.
std::string refusal(const std::string& script, const std::vector<std::string>& arguments = {}) {
  const TestDirectory home;
  const std::string train = home.file("train", "#!/bin/sh\n" + script + "\n");
  std::filesystem::permissions(train, std::filesystem::perms::owner_all);
  std::vector<std::string> command{"train"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  try {
    check_train_arguments(train, command);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(TrainArguments, AreRefusedInTheWordsOfTrain) {
  EXPECT_EQ(refusal("echo \"train: unknown flag $3\" >&2; exit 2", {"--zero", "--stepz"}),
            "train: unknown flag --stepz");
}

TEST(TrainArguments, OnlyAWrongCommandLineIsRefused) {
  for (const char* script : {"echo help", "exit 78", "kill -9 $$"})
    EXPECT_EQ(refusal(script), "") << script;
}

TEST(TrainArguments, AreReadByNoRank) {
  ASSERT_EQ(::setenv("RANK", "1", 1), 0);
  const std::string refused = refusal("test \"$1$RANK\" = --help || exit 2");
  ASSERT_EQ(::unsetenv("RANK"), 0);
  EXPECT_EQ(refused, "");
}

TEST(TrainArguments, OfTheOwnTrainAreKnownByAnyPathOfIt) {
  const TestDirectory home;
  std::filesystem::create_directory(home / "bin");
  const std::string train = home.file("bin/train", "#!/bin/sh\n");
  std::filesystem::permissions(train, std::filesystem::perms::owner_all);
  std::filesystem::create_symlink(train, home / "link");
  for (const std::string& program : {std::string("train"), train, home / "bin/../bin/train",
                                     home / "link", std::filesystem::relative(train).string()})
    EXPECT_EQ(own_train({program}, home / "bin"), train) << program;
}

TEST(TrainArguments, OfAnotherProgramAreNotKnown) {
  const TestDirectory home;
  std::filesystem::create_directory(home / "bin");
  const std::string train = home.file("bin/train", "#!/bin/sh\n");
  std::filesystem::permissions(train, std::filesystem::perms::owner_all);
  const std::string copy = home.file("train", "#!/bin/sh\n");
  for (const std::string& program :
       {copy, std::string("/elsewhere/train"), std::string("plan"), std::string("trainer")})
    EXPECT_EQ(own_train({program}, home / "bin"), "") << program;
}

}  // namespace
}  // namespace strata::launcher
