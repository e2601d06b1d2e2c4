#include "core/new_folders.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/testing/test_directory.h"

namespace strata {
namespace {

namespace fs = std::filesystem;

/// Runs `action` many times on four threads at once.
void at_once(const std::function<void()>& action) {
  std::atomic<int> waiting = 4;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&] {
      --waiting;
      while (waiting > 0) {
      }
      for (int time = 0; time < 500; ++time) action();
    });
}

TEST(NewFolders, GoUnlessSomethingIsInThem) {
  const TestDirectory home;
  fs::create_directory(home / "before");
  {
    NewFolders folders;
    EXPECT_FALSE(folders.make(home / "before"));
    EXPECT_FALSE(folders.make(home / "empty/inner/"));
    EXPECT_FALSE(folders.make(home / "used/inner"));
    EXPECT_FALSE(folders.make(home / "used/other"));
    EXPECT_TRUE(fs::is_directory(home / "empty/inner"));
    home.file("used/inner/file", "x");
  }
  EXPECT_TRUE(fs::exists(home / "before")) << "it was there";
  EXPECT_FALSE(fs::exists(home / "empty"));
  EXPECT_TRUE(fs::exists(home / "used/inner/file"));
  EXPECT_FALSE(fs::exists(home / "used/other"));
}

TEST(NewFolders, WhatCannotBeMadeIsSaidAndLeavesNothing) {
  const TestDirectory home;
  home.file("file", "x");
  {
    NewFolders folders;
    EXPECT_EQ(folders.make(home / "file/inner"), std::errc::not_a_directory);
    EXPECT_EQ(folders.make(home / ("outer/" + std::string(300, 'x'))),
              std::errc::filename_too_long);
  }
  EXPECT_FALSE(fs::exists(home / "outer"));
}

TEST(NewFolders, StayWhereTheyAreToBeKept) {
  const TestDirectory home;
  {
    NewFolders folders;
    EXPECT_FALSE(folders.make(home / "kept/inner"));
    folders.keep();
    EXPECT_FALSE(folders.make(home / "kept/other"));
  }
  EXPECT_TRUE(fs::exists(home / "kept/inner"));
  EXPECT_FALSE(fs::exists(home / "kept/other"));
}

TEST(NewFolders, HaveTheModeThatIsAskedFor) {
  const TestDirectory home;
  const mode_t before = ::umask(022);
  NewFolders shared, own(0700);
  EXPECT_FALSE(shared.make(home / "shared"));
  EXPECT_FALSE(own.make(home / "outer/own"));
  ::umask(before);
  EXPECT_EQ(fs::status(home / "shared").permissions(), fs::perms{0755});
  EXPECT_EQ(fs::status(home / "outer").permissions(), fs::perms{0700});
  EXPECT_EQ(fs::status(home / "outer/own").permissions(), fs::perms{0700});
}

TEST(NewFolders, TellWhetherAFolderIsNew) {
  const TestDirectory home;
  NewFolders folders;
  EXPECT_FALSE(folders.make_new(home / "outer/new/"));
  EXPECT_EQ(folders.make_new(home / "outer/new"), std::errc::file_exists);
  fs::create_symlink("nowhere", home / "link");
  EXPECT_EQ(folders.make(home / "link"), std::errc::file_exists) << "of a link to nothing";
}

TEST(NewFolders, SayWhyNothingCanBeWrittenThere) {
  const TestDirectory home;
  const std::string file = home.file("file", "x");
  NewFolders folders;
  const auto refusal = [&](const std::string& folder) {
    return message_of<IoError>([&] { folders.make_writable(folder, "the folder of logs"); });
  };
  EXPECT_EQ(refusal(home / "new/inner"), "no error");
  EXPECT_TRUE(fs::is_directory(home / "new/inner"));
  EXPECT_NE(refusal(file).find("cannot write to the folder of logs"), std::string::npos);
  EXPECT_NE(refusal(file + "/inner").find("cannot create the folder of logs"), std::string::npos);
  EXPECT_EQ(why_not_writable(home / "nowhere"), ENOENT);
}

TEST(NewFolders, AreMadeAgainWhereOthersRemoveThemMeanwhile) {
  const TestDirectory home;
  std::atomic<int> failures = 0;
  at_once([&] {
    NewFolders folders;
    if (message_of<IoError>([&] { folders.make_writable(home / "a/b", "it"); }) != "no error")
      ++failures;
  });
  EXPECT_EQ(failures, 0);
}

TEST(NewFolders, AreNotLeftByAnyOfThoseWhoFindThem) {
  const TestDirectory home;
  std::atomic<int> made = 0;
  at_once([&] {
    NewFolders folders;
    if (!folders.make_new(home / "one")) ++made;
    EXPECT_FALSE(folders.make(home / "one"));
  });
  EXPECT_GT(made, 0);
  EXPECT_FALSE(fs::exists(home / "one"));
}

}  // namespace
}  // namespace strata
