#include "train/files/commit.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/test_directory.h"

namespace strata::train {
namespace {

namespace fs = std::filesystem;

TEST(Commit, ADirectoryAppearsWhole) {
  const TestDirectory root;
  const std::string target = root / "out";
  const std::string staging = staging_directory(target + "/", "7");
  EXPECT_EQ(staging, target + ".tmp-7");
  create_staging(staging);
  write_file_atomically(staging + "/a", "x");
  fs::create_directory(staging + "/sub");
  write_file_atomically(staging + "/sub/b", "y");
  EXPECT_FALSE(fs::exists(target));
  commit_directory(staging, target + "/");
  EXPECT_FALSE(fs::exists(staging));
  EXPECT_EQ(read_whole_file(target + "/sub/b", 10), "y");
}

TEST(Commit, LeftoversOfABrokenAttemptAreRemoved) {
  const TestDirectory root;
  create_staging(root / "out.tmp-1");
  write_file_atomically(root / "out.tmp-1/old", "x");
  create_staging(root / "out.tmp-1");
  EXPECT_TRUE(fs::is_empty(root / "out.tmp-1"));
}

TEST(Commit, WhatIsThereIsNeverReplaced) {
  const TestDirectory root;
  create_staging(root / "s");
  write_file_atomically(root / "s/new", "x");
  fs::create_directory(root / "out");
  EXPECT_NO_THROW(require_new_directory(root / "out"));
  EXPECT_NO_THROW(require_new_directory(root / "none"));
  write_file_atomically(root / "out/precious", "p");
  EXPECT_NE(message_of<DataError>([&] {
              commit_directory(root / "s", root / "out");
            }).find("is not empty"),
            std::string::npos);
  EXPECT_EQ(read_whole_file(root / "out/precious", 10), "p");
  EXPECT_NE(message_of<DataError>([&] {
              require_new_directory(root / "out/precious");
            }).find("not a directory"),
            std::string::npos);
  fs::remove(root / "out/precious");
  commit_directory(root / "s", root / "out");
  EXPECT_TRUE(fs::exists(root / "out/new"));
}

TEST(Commit, AMissingStagingDirectoryIsAnError) {
  const TestDirectory root;
  EXPECT_THROW(commit_directory(root / "s", root / "out"), IoError);
}

}  // namespace
}  // namespace strata::train
