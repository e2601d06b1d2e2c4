#include "kernels/cuda/library_folders.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "core/testing/test_directory.h"

namespace strata::cuda {
namespace {

namespace fs = std::filesystem;
using Folders = std::vector<std::string>;

class LibraryFolders : public testing::Test {
 protected:
  /// Makes the folder and returns its path.
  std::string make(const std::string& name) const {
    fs::create_directories(directory_ / name);
    return directory_ / name;
  }

  TestDirectory directory_;
};

TEST_F(LibraryFolders, WhatTheUserSaysComesBeforeTheLoader) {
  const LibrarySearch search =
      cuda_library_search({"liba.so.1", "liba.so"}, {.cuda_path = "/x:/y"}, "set it");
  EXPECT_EQ(search.names, (Folders{"liba.so.1", "liba.so"}));
  EXPECT_EQ(search.advice, "set it");
  EXPECT_EQ(search.folders_before_loader,
            (Folders{"/x", "/x/lib", "/x/lib64", "/y", "/y/lib", "/y/lib64"}));
}

TEST_F(LibraryFolders, ToolkitsComeNewestFirstThenTheSystemThenPython) {
  const std::string old_toolkit = make("usr/local/cuda-12.4/lib64");
  const std::string new_toolkit = make("usr/local/cuda-13.0/targets/x86_64-linux/lib");
  const std::string system = make("usr/lib/x86_64-linux-gnu");
  const std::string wheel = make("usr/local/lib/python3.11/dist-packages/nvidia/nccl/lib");
  Folders found = cuda_library_search({"a"}, {.root = directory_.path()}, "").folders_after_loader;
  std::erase(found, directory_ / "usr/lib");
  EXPECT_EQ(found, (Folders{new_toolkit, old_toolkit, system, wheel}));
}

TEST_F(LibraryFolders, FindsTheWheelsOfAVirtualEnvironmentAndOfTheUser) {
  const std::string base = make("base/lib/python3.11/site-packages/nvidia/cu13/lib");
  const std::string environment = make("venv/lib/python3.11/site-packages/nvidia/cudnn/lib");
  const std::string user = make("home/.local/lib/python3.12/site-packages/nvidia/nccl/lib");
  make("base/bin");
  make("venv/bin");
  directory_.file("base/bin/python3.11", "");
  fs::create_symlink(directory_ / "base/bin/python3.11", directory_ / "venv/bin/python3");
  const std::string root = make("empty");
  const auto found = [&](const LibraryEnvironment& from) {
    return cuda_library_search({"a"}, from, "").folders_after_loader;
  };
  // The python3 on PATH is a link in the virtual environment to the python3 of the base.
  const std::string path = make("nothing") + ":" + directory_ / "venv/bin";
  EXPECT_EQ(found({.path = path, .home = directory_ / "home", .root = root}),
            (Folders{environment, base, user}));
  EXPECT_EQ(found({.virtual_env = directory_ / "venv", .root = root}), (Folders{environment}));
  EXPECT_EQ(found({.root = root}), Folders{});
}

}  // namespace
}  // namespace strata::cuda
