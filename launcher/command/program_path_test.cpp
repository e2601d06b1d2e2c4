#include "launcher/command/program_path.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace strata::launcher {
namespace {

namespace fs = std::filesystem;

class ProgramPath : public ::testing::Test {
 protected:
  ProgramPath() {
    fs::create_directories(root_ / "own");
    fs::create_directories(root_ / "path");
    add(root_ / "own" / "train", true);
    add(root_ / "path" / "train", true);
    add(root_ / "path" / "tool", true);
    add(root_ / "path" / "script.py", false);
  }
  ~ProgramPath() override { fs::remove_all(root_); }

  static void add(const fs::path& path, bool executable) {
    std::ofstream(path) << "#!/bin/sh\n";
    if (executable) fs::permissions(path, fs::perms::owner_all);
  }
  std::string find(const std::string& name) const {
    return find_program(name, root_ / "own", "/nowhere:" + (root_ / "path").string());
  }
  std::string refusal(const std::string& name,
                      const std::vector<std::string_view>& words = {}) const {
    try {
      (void)find_program(name, root_ / "own", "/nowhere:" + (root_ / "path").string(), words);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  }

  const fs::path root_ =
      fs::path(::testing::TempDir()) / ("program_path_" + std::to_string(::getpid()));
};

TEST_F(ProgramPath, LooksNextToMlaunchFirstThenInPath) {
  EXPECT_EQ(find("train"), root_ / "own" / "train");
  EXPECT_EQ(find("tool"), root_ / "path" / "tool");
  EXPECT_EQ(find(root_ / "path" / "train"), root_ / "path" / "train");
}

TEST_F(ProgramPath, LooksIntoThisFolderOnlyWherePathSaysSo) {
  fs::create_directories(root_ / "here");
  add(root_ / "here" / "train", true);
  add(root_ / "here" / "planted", true);
  const fs::path before = fs::current_path();
  fs::current_path(root_ / "here");
  const std::string path = root_ / "path", said = refusal("planted");
  std::string said_without_folder;
  try {
    (void)find_program("planted", "", path);
  } catch (const InvalidArgument& error) {
    said_without_folder = error.what();
  }
  EXPECT_EQ(find_program("train", "", path), root_ / "path" / "train");
  EXPECT_EQ(find_program("planted", "", path + ":."), fs::path(".") / "planted");
  fs::current_path(before);
  EXPECT_EQ(said_without_folder, "program planted is not in $PATH");
  EXPECT_NE(said.find("there is one in this folder: start ./planted"), std::string::npos) << said;
}

TEST_F(ProgramPath, NamesTheNearestProgram) {
  for (const char* name : {"trian", "trai"})
    EXPECT_NE(refusal(name).find("program " + std::string(name)), std::string::npos) << name;
  for (const char* name : {"trian", "trai"})
    EXPECT_NE(refusal(name).find("did you mean 'train'?"), std::string::npos) << name;
  EXPECT_NE(refusal("generate").find("there are: train"), std::string::npos);
  EXPECT_NE(refusal("statsu", {"status", "stop"}).find("did you mean 'status'?"),
            std::string::npos);
  EXPECT_EQ(refusal("statsu").find("did you mean"), std::string::npos);
  EXPECT_EQ(find_program("tool", root_ / "own", (root_ / "path").string(), {"tools"}),
            root_ / "path" / "tool")
      << "a program of that name starts";
}

TEST_F(ProgramPath, SaysWhyAPathIsNoProgram) {
  EXPECT_NE(refusal(root_ / "path" / "none").find("does not exist"), std::string::npos);
  EXPECT_NE(refusal(root_ / "path").find("is a directory"), std::string::npos);
  EXPECT_NE(refusal(root_ / "path" / "script.py").find("python3"), std::string::npos);
}

}  // namespace
}  // namespace strata::launcher
